"""Triton's /metrics with the TensorRT-LLM backend's own; durations in emulated microseconds.

The repository is that of the backend's guide: an ensemble, which bears the served name, over
``preprocessing``, ``tensorrt_llm`` and ``postprocessing``. GPU, CPU and memory-pool families are
left out: they are measured on the machine, which is the node's part here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics.cpp import Family, Histogram, Labels
from servelab.engine.metrics.exporting import Load

CONTENT_TYPE = "text/plain; charset=utf-8"

BACKEND_MODEL = "tensorrt_llm"
BLS_MODEL = "tensorrt_llm_bls"
STEPS = ("preprocessing", BACKEND_MODEL, "postprocessing")
VERSION = "1"
FAILURES = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
LENGTH_BOUNDS = (10.0, 50.0, 100.0, 500.0, 1000.0)

REQUESTS = ("active", "max", "scheduled", "context", "waiting")
BLOCKS = ("max", "free", "used", "tokens_per", "reused", "fraction")
MEMORIES = ("cpu", "gpu", "pinned")
TRANSFERS = ("kv_cache_transfer_ms", "request_count")
BATCHER = ("total_context_tokens", "generation_requests", "micro_batch_id", "paused_requests")
GENERAL = ("timestamp", "iteration_counter")

_COUNTERS = (
    ("nv_inference_request_success", "Number of successful inference requests, all batch sizes"),
    ("nv_inference_request_failure", "Number of failed inference requests, all batch sizes"),
    (
        "nv_inference_count",
        "Number of inferences performed (does not include cached requests)",
    ),
    (
        "nv_inference_exec_count",
        "Number of model executions performed (does not include cached requests)",
    ),
    (
        "nv_inference_request_duration_us",
        "Cumulative inference request duration in microseconds (includes cached requests)",
    ),
    (
        "nv_inference_queue_duration_us",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
    ),
    (
        "nv_inference_compute_input_duration_us",
        "Cumulative compute input duration in microseconds (does not include cached requests)",
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Cumulative compute inference duration in microseconds (does not include cached requests)",
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds (does not include cached "
        "requests)",
    ),
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a model has done; ``durations`` are counts and nanoseconds, emulated."""

    executions: int
    last_unix_ms: int
    durations: Mapping[str, tuple[int, int]]


def exporter(spec: EngineSpec, load: Load, created_unix_s: float) -> "Exporter":
    """The exporter of an engine."""
    config = spec.config
    return Exporter(
        load, spec.served_name, config.max_sequences, config.kv_blocks, config.block_size
    )


class Exporter:
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    content_type = CONTENT_TYPE

    def __init__(
        self, load: Load, served_name: str, max_sequences: int, kv_blocks: int, block_tokens: int
    ) -> None:
        self._load = load
        self._max_sequences = max_sequences
        self._blocks = kv_blocks
        self._block_tokens = block_tokens
        self._prompt_tokens = 0
        self._generated_tokens = 0
        self._iterations = 0
        self._paused = 0
        self._context_requests = 0
        self._context_tokens = 0
        self._last_s = 0.0
        self._asked: dict[str, int] = {}  # requests of others than the ensemble
        self._last_unix_ms = 0
        self._models = (served_name, *STEPS, BLS_MODEL)
        self._labels = [{"model": model, "version": VERSION} for model in self._models]
        failures = [labels | {"reason": reason} for labels in self._labels for reason in FAILURES]
        self._counters = {
            name: Family("counter", name, text, failures if "failure" in name else self._labels)
            for name, text in _COUNTERS
        }
        self._pending = Family(
            *("gauge", "nv_inference_pending_request_count"),
            "Instantaneous number of pending requests awaiting execution per-model.",
            self._labels,
        )
        self._build_backend()

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        return self._prompt_tokens, self._generated_tokens

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        for output in outputs:
            steps = len(output.times_s)
            self._iterations += steps
            self._generated_tokens += len(output.ids) * steps
            self._paused += len(output.preempted)
            self._context_requests = len(output.firsts)
            self._context_tokens = output.prefill_tokens
            if steps:
                self._last_s = output.times_s[-1]
            for first in output.firsts:
                self._prompt_tokens += first.prompt_tokens
                self._inputs.observe(first.prompt_tokens)
            for finish in output.finished:
                self._observe_finish(finish)

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """Requests are counted when they end."""

    def count_rejection(self) -> None:
        """Count a request refused because too many wait."""
        self._fail("REJECTED")

    def attribute(self, ids: Iterable[str], model: str, now_unix_ms: int) -> None:
        """Say which model was asked, of those that take text."""
        self._last_unix_ms = now_unix_ms
        if model != self._models[0]:
            self._asked |= dict.fromkeys(ids, self._models.index(model))

    def statistics(self, model: str) -> Statistics:
        """What a model has done so far."""
        index = self._models.index(model)

        def value(name: str) -> int:
            return int(self._counters[f"nv_inference_{name}"].values[index])

        count = value("request_success")
        failures = self._counters["nv_inference_request_failure"].values
        failed = int(sum(failures[index * len(FAILURES) : (index + 1) * len(FAILURES)]))
        names = ("queue", "compute_input", "compute_infer", "compute_output")
        durations = {name: (count, value(f"{name}_duration_us") * 1000) for name in names}
        durations |= {"success": (count, value("request_duration_us") * 1000), "fail": (failed, 0)}
        return Statistics(value("exec_count"), self._last_unix_ms if count else 0, durations)

    def render(self) -> str:
        """The exposition in the text format."""
        load = self._load
        running, waiting, used = load.running, load.waiting, round(load.kv_usage * self._blocks)
        for model in (0, 1 + STEPS.index(BACKEND_MODEL)):
            self._pending.set(waiting, model)
        context = min(self._context_requests, running)
        self._set(
            self._requests, (running + waiting, self._max_sequences, running, context, waiting)
        )
        free = self._blocks - used
        self._set(
            self._kv,
            (self._blocks, free, used, self._block_tokens, load.prefix_tokens[1], load.kv_usage),
        )
        tokens = self._context_tokens if context else 0
        self._set(self._batcher, (tokens, running - context, 0, self._paused))
        self._set(self._general, (round(self._last_s * 1e6), self._iterations))
        families = [*self._counters.values(), self._pending, *self._backend]
        return "".join(family.render() for family in families)

    def _set(self, family: Family, values: Sequence[float]) -> None:
        for index, value in enumerate(values):
            family.set(value, index)

    def _build_backend(self) -> None:
        """What the TensorRT-LLM backend adds (its custom_metrics_reporter.cc)."""

        def group(
            name: str, text: str, label: str, values: Sequence[str], kind: str = "gauge"
        ) -> Family:
            common: Labels = {"model": BACKEND_MODEL, "version": VERSION}
            series = [{**common, label: value} for value in values]
            return Family(kind, f"nv_trt_llm_{name}_metrics", text, series)

        def lengths(name: str, kind: str) -> Histogram:
            labels = {"model": BACKEND_MODEL, "version": VERSION, "response_metric_type": kind}
            text = "TRT LLM response metrics"
            return Histogram(f"nv_llm_{name}_token_len", text, labels, LENGTH_BOUNDS)

        self._requests = group("request", "TRT LLM request metrics", "request_type", REQUESTS)
        self._kv = group(
            "kv_cache_block", "TRT LLM KV cache block metrics", "kv_cache_block_type", BLOCKS
        )
        text, label = (
            "TRT LLM inflight_batcher-specific metrics",
            "inflight_batcher_specific_metric",
        )
        self._batcher = group("inflight_batcher", text, label, BATCHER)
        self._general = group("general", "General TRT LLM metrics", "general_type", GENERAL)
        self._outputs = lengths("output", "total_output_tokens")
        self._inputs = lengths("input", "total_input_tokens")
        self._backend: tuple[Family | Histogram, ...] = (
            self._requests,
            group("runtime_memory", "TRT LLM runtime memory metrics", "memory_type", MEMORIES),
            self._kv,
            group(
                "disaggregated_serving",
                "TRT LLM disaggregated serving metrics",
                "disaggregated_serving_type",
                TRANSFERS,
                "counter",
            ),
            self._batcher,
            self._general,
            self._outputs,
            self._inputs,
        )

    def _observe_finish(self, finish: Finish) -> None:
        asked = self._asked.pop(finish.id, 0)
        if finish.reason == FinishReason.ABORT:
            self._fail("CANCELED", asked)
            return
        self._outputs.observe(finish.output_tokens)
        total_us = (finish.at_s - finish.arrived_s) * 1e6
        started_s = finish.at_s if finish.scheduled_s is None else finish.scheduled_s
        queue_us = (started_s - finish.arrived_s) * 1e6
        # The steps before and after take no time here; what was asked has their sums.
        for index in (asked, *range(1, 1 + len(STEPS))):
            works = index == asked or self._models[index] == BACKEND_MODEL
            for name, amount in (
                ("request_success", 1),
                ("count", 1),
                ("exec_count", 1),
                ("request_duration_us", int(total_us) if works else 0),
                ("queue_duration_us", int(queue_us) if works else 0),
                ("compute_infer_duration_us", int(total_us - queue_us) if works else 0),
            ):
                self._counters[f"nv_inference_{name}"].add(amount, index)

    def _fail(self, reason: str, asked: int = 0) -> None:
        for model in (asked, 1 + STEPS.index(BACKEND_MODEL)):
            index = model * len(FAILURES) + FAILURES.index(reason)
            self._counters["nv_inference_request_failure"].add(1, index)
