"""An engine's /metrics with TGI 3.3's names, labels, buckets; durations in emulated seconds.

As in the real router nothing is there before it is first used: a fresh engine's answer is empty.
"""

from collections.abc import Iterable, Sequence

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics.exporting import Load
from servelab.engine.metrics.rust import Family, Histogram, Labels

CONTENT_TYPE = "text/plain; charset=utf-8"

# router/src/server.rs: 35 bounds from 1e-4, each 1.5 times the one before.
DURATION_COUNT, DURATION_FIRST_S, DURATION_RATIO = 35, 0.0001, 1.5
LENGTH_STEPS = 100
BATCH_SIZE_BOUNDS = tuple(float(size) for size in range(1, 1025))

PREFILL: Labels = (("method", "prefill"),)
DECODE: Labels = (("method", "decode"),)
_DURATIONS = (
    ("request_duration", "Request duration"),
    ("request_validation_duration", "Request validation duration"),
    ("request_queue_duration", "Request queue duration"),
    ("request_inference_duration", "Request inference duration"),
    ("request_mean_time_per_token_duration", "Mean time per token per request"),
    ("batch_inference_duration", "Batch inference duration"),
    ("batch_forward_duration", "Batch forward duration per method (prefill or decode)"),
    (
        "batch_filter_duration",
        "Time spent filtering batches and sending generated tokens per method (prefill or decode)",
    ),
    ("batch_decode_duration", "Time spent decoding a batch per method (prefill or decode)"),
    ("batch_concat_duration", ""),
)
_COUNTERS = (
    ("request_count", "Total number of requests"),
    ("request_success", "Number of successful requests"),
    ("request_failure", ""),
    ("batch_inference_count", "Inference calls per method (prefill or decode)"),
    (
        "batch_inference_success",
        "Number of successful inference calls per method (prefill or decode)",
    ),
    ("batch_concat", ""),
)
_GAUGES = (
    ("queue_size", "Current queue size"),
    ("batch_current_size", "Current batch size"),
    ("batch_current_max_tokens", "Maximum tokens for the current batch"),
)


def duration_bounds() -> tuple[float, ...]:
    """Upper bounds in seconds, added up as the router does."""
    bounds, value = [], DURATION_FIRST_S
    for _ in range(DURATION_COUNT):
        value *= DURATION_RATIO
        bounds.append(value)
    return tuple(bounds)


def length_bounds(limit_tokens: int) -> tuple[float, ...]:
    """100 equal steps up to a limit."""
    return tuple(limit_tokens / LENGTH_STEPS * (step + 1) for step in range(LENGTH_STEPS))


def exporter(spec: EngineSpec, load: Load, created_unix_s: float) -> "Exporter":
    """The exporter of an engine."""
    total = spec.config.max_model_tokens
    given = dict(spec.options).get("max-input-tokens", "")
    input_tokens = int(given) if given.isdecimal() else total - 1
    return Exporter(load, input_tokens, total, spec.config.kv_blocks * spec.config.block_size)


class Exporter:
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    content_type = CONTENT_TYPE

    def __init__(
        self, load: Load, max_input_tokens: int, max_total_tokens: int, kv_tokens: int
    ) -> None:
        self._load = load
        self._kv_tokens = kv_tokens
        self._prompt_tokens = 0
        self._generated_tokens = 0
        self._last_s = 0.0  # the end of the newest step
        self._seen = False  # whether a request ever came to the queue
        self._counters = {name: Family("counter", f"tgi_{name}", text) for name, text in _COUNTERS}
        self._gauges = {name: Family("gauge", f"tgi_{name}", text) for name, text in _GAUGES}
        bounds = duration_bounds()
        self._histograms = {
            name: Histogram(f"tgi_{name}", bounds, text) for name, text in _DURATIONS
        }
        for name, limits, text in (
            ("request_input_length", length_bounds(max_input_tokens), "Input token length per"),
            ("request_generated_tokens", length_bounds(max_total_tokens), "Generated tokens per"),
            ("request_max_new_tokens", length_bounds(max_total_tokens), "Maximum new tokens per"),
            ("request_skipped_tokens", (), "Speculated tokens per"),
        ):
            self._histograms[name] = Histogram(f"tgi_{name}", limits, f"{text} request")
        self._histograms["batch_next_size"] = Histogram(
            "tgi_batch_next_size", BATCH_SIZE_BOUNDS, "Batch size of the next batch"
        )

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        return self._prompt_tokens, self._generated_tokens

    def count_arrival(self) -> None:
        """Count a request that a handler took; OpenAI's routes count theirs twice."""
        self._counters["request_count"].add()

    def count_failure(self, label: str) -> None:
        """Count a request that failed: validation, overloaded, template, generation."""
        self._counters["request_failure"].add(1, (("err", label),))

    def count_validated(self, input_tokens: int, new_tokens: int) -> None:
        """Count the lengths of a request that keeps the rules, and that is queued now."""
        self._seen = True
        self._histograms["request_input_length"].observe(input_tokens)
        self._histograms["request_max_new_tokens"].observe(new_tokens)

    def count_answered(self, finishes: Sequence[Finish]) -> None:
        """Count requests that were answered whole."""
        for finish in finishes:
            total_s = finish.at_s - finish.arrived_s
            started_s = finish.at_s if finish.scheduled_s is None else finish.scheduled_s
            inference_s = finish.at_s - started_s
            self._counters["request_success"].add()
            per_token_s = inference_s / max(1, finish.output_tokens)
            for name, value in (
                ("request_duration", total_s),
                ("request_validation_duration", 0.0),
                ("request_queue_duration", total_s - inference_s),
                ("request_inference_duration", inference_s),
                ("request_mean_time_per_token_duration", per_token_s),
                ("request_generated_tokens", finish.output_tokens),
            ):
                self._histograms[name].observe(value)

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        for output in outputs:
            if output.ids or output.prefill_tokens:
                self._observe_steps(output)
            for first in output.firsts:
                self._prompt_tokens += first.prompt_tokens
            for finish in output.finished:
                if finish.reason == FinishReason.ABORT:
                    self.count_failure("dropped")

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """The router counts requests when they come."""

    def count_rejection(self) -> None:
        """Count a request refused because too many are open."""
        self.count_failure("overloaded")

    def render(self) -> str:
        """The exposition in the text format."""
        if self._seen:
            load = self._load
            self._gauges["queue_size"].set(load.waiting)
            self._gauges["batch_current_size"].set(load.running)
            reserved = round(load.kv_usage * self._kv_tokens)
            self._gauges["batch_current_max_tokens"].set(reserved)
        families: Iterable[Family | Histogram] = (
            *self._counters.values(),
            *self._gauges.values(),
            *self._histograms.values(),
        )
        return "".join(family.render() for family in families)

    def _observe_steps(self, output: Output) -> None:
        """One step with prompts in it is a prefill; the others of a run are decodes."""
        steps = len(output.times_s)
        generated = len(output.ids) * steps
        self._generated_tokens += generated
        if generated:
            self._histograms["request_skipped_tokens"].observe(0, generated)
        begun_s = self._last_s
        for first in output.firsts:
            begun_s = max(begun_s, first.arrived_s)
        if output.prefill_tokens:
            self._observe_batch(PREFILL, output.times_s[0] - begun_s, 1)
            new = max(1, len(output.firsts))
            self._histograms["batch_next_size"].observe(new)
            if len(output.ids) > new:
                self._counters["batch_concat"].add(1, (("reason", "chunking"),))
                self._histograms["batch_concat_duration"].observe(0.0, 1, DECODE)
            begun_s, steps = output.times_s[0], steps - 1
        if steps:
            self._observe_batch(DECODE, (output.times_s[-1] - begun_s) / steps, steps)
        self._last_s = output.times_s[-1]

    def _observe_batch(self, method: Labels, step_s: float, times: int) -> None:
        # All of a step's time is the forward pass's here.
        self._counters["batch_inference_count"].add(times, method)
        self._counters["batch_inference_success"].add(times, method)
        for name, value in (
            ("batch_forward_duration", step_s),
            ("batch_inference_duration", step_s),
            ("batch_decode_duration", 0.0),
            ("batch_filter_duration", 0.0),
        ):
            self._histograms[name].observe(value, times, method)
