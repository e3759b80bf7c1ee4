"""TensorRT-LLM's metrics with the names, labels and buckets of 1.3; durations in emulated seconds.

Of requests with ``return_perf_metrics``, when they end; of steps with ``enable_iter_perf_stats``:
Prometheus is told of them at the start, then once a request ends and from there on until there is
nothing to do; ``/metrics`` once of each. The real server is several processes: a series is there
once it was used, gauges tell their process. Left out is what nothing here foretells (memory, the
GPU's name) and what no engine here does (speculation, a cache on the host).
"""

from collections.abc import Mapping, Sequence

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics.exporting import Load
from servelab.engine.metrics.series import Shared, SharedHistogram
from servelab.engine.metrics.tensorrt_llm_steps import IDLE, Step, Steps

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUESTS = "return-perf-metrics"
STEPS = "enable-iter-perf-stats"
# Without a step for so long, its steps are not read until a request ends.
IDLE_S = 0.5

# tensorrt_llm/metrics/collector.py of NVIDIA/TensorRT-LLM@050f80de.
REQUEST_BOUNDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0),
    *(240.0, 480.0, 960.0, 1920.0, 7680.0),
)
FIRST_TOKEN_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKEN_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
PREFILL_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0),
    *(160.0, 640.0, 2560.0),
)
CACHED_BOUNDS = (0.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0)
BATCH_BOUNDS = tuple(64.0 * 2**power for power in range(10))


def exporter(spec: EngineSpec, load: Load, created_unix_s: float) -> "Exporter":
    """The exporter of an engine."""
    return Exporter(spec, load)


class Exporter:
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    content_type = CONTENT_TYPE

    def __init__(self, spec: EngineSpec, load: Load) -> None:
        self._load = load
        options = dict(spec.options)
        self.enabled = REQUESTS in options
        self.steps = Steps(spec) if STEPS in options else None
        labels = {"model_name": spec.served_name, "engine_type": "pytorch"}
        self._requests = Requests(labels)
        self._iterations = Iterations(labels, spec)
        if self.steps is not None:
            self._iterations.tell(IDLE)
        self._errors = Shared(
            "counter", "trtllm_request_error_total", "Errors, by HTTP status.", labels
        )
        self._totals = (0.0, 0.0)

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        return self._totals

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        prompts, made = self._totals
        for output in outputs:
            made += len(output.ids) * len(output.times_s)
            prompts += sum(first.prompt_tokens for first in output.firsts)
            for finish in output.finished:
                self._requests.observe(finish)
            if self.steps is not None:
                self._iterations.observe(self.steps.observe(output, self._load))
        self._totals = prompts, made
        if outputs:
            running = 0 if not self._load.running else len(outputs[-1].ids)
            self._iterations.scheduled.set(running)

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """It counts requests when they end."""

    def count_rejection(self) -> None:
        """The real server rejects none for want of room."""

    def count_error(self, status: int) -> None:
        """Count an answer that is an error."""
        self._errors.at(http_code=str(status)).add(1)

    def render(self) -> str:
        """The exposition."""
        if self.steps is not None and not self._load.running and not self._load.waiting:
            self._iterations.rest()
        return self._requests.render() + self._iterations.render() + self._errors.render()


class Requests:
    """What is told of a request when it ends."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        def counter(name: str, text: str) -> Shared:
            return Shared("counter", f"trtllm_{name}", text, labels)

        def histogram(name: str, text: str, bounds: Sequence[float]) -> SharedHistogram:
            return SharedHistogram(f"trtllm_{name}", text, labels, bounds)

        self._success = counter("request_success_total", "Requests that ended well.")
        self._prompt = counter("prompt_tokens_total", "Prompt tokens.")
        self._generated = counter("generation_tokens_total", "Tokens generated.")
        self._cached = counter("prompt_cached_tokens_total", "Prompt tokens from the KV cache.")
        self._cached.at()
        self._cached_each = histogram(
            "prompt_cached_tokens_per_request", "Those of a request.", CACHED_BOUNDS
        )
        self._times = {
            "e2e": histogram("e2e_request_latency_seconds", "To the end.", REQUEST_BOUNDS),
            "ttft": histogram(
                "time_to_first_token_seconds", "To the first token.", FIRST_TOKEN_BOUNDS
            ),
            "tpot": histogram("time_per_output_token_seconds", "Mean of a request.", TOKEN_BOUNDS),
            "queue": histogram("request_queue_time_seconds", "In the queue.", REQUEST_BOUNDS),
            "prefill": histogram("request_prefill_time_seconds", "In prefill.", PREFILL_BOUNDS),
            "decode": histogram("request_decode_time_seconds", "In decoding.", REQUEST_BOUNDS),
            "inference": histogram("request_inference_time_seconds", "In both.", REQUEST_BOUNDS),
        }

    def observe(self, finish: Finish) -> None:
        """Count a request; one that its client left is told of nowhere."""
        if finish.reason == FinishReason.ABORT:
            return
        self._success.at(finished_reason=str(finish.reason)).add(1)
        self._prompt.at().add(finish.prompt_tokens)
        self._generated.at().add(finish.output_tokens)
        self._cached.at().add(finish.cached_tokens)
        self._cached_each.at().observe(finish.cached_tokens)
        for name, value in _times(finish).items():
            # Durations of nothing are left out, but for the one in the queue.
            if value or name == "queue":
                self._times[name].at().observe(value)

    def render(self) -> str:
        """The exposition."""
        families: tuple[Shared | SharedHistogram, ...] = (
            *(self._success, self._prompt, self._generated, self._cached),
            *(self._cached_each, *self._times.values()),
        )
        return "".join(family.render() for family in families)


def _times(finish: Finish) -> dict[str, float]:
    times = {"e2e": finish.at_s - finish.arrived_s}
    scheduled_s, first_s, last_s = finish.scheduled_s, finish.first_token_s, finish.last_token_s
    if scheduled_s is not None:
        times["queue"] = scheduled_s - finish.arrived_s
    if first_s is None or last_s is None or scheduled_s is None:
        return times
    times["ttft"] = first_s - finish.arrived_s
    times["prefill"] = first_s - scheduled_s
    times["decode"] = last_s - first_s
    times["inference"] = last_s - scheduled_s
    if finish.output_tokens > 1:
        times["tpot"] = (last_s - first_s) / (finish.output_tokens - 1)
    return times


class Iterations:
    """What Prometheus is told of the steps."""

    def __init__(self, labels: Mapping[str, str], spec: EngineSpec) -> None:
        config = spec.config
        self._max_active = config.max_sequences
        self._blocks = config.kv_blocks
        per_process = {**labels, "pid": "1"}
        self._gauges: dict[str, Shared] = {}
        self._per_process = per_process
        self._completed = Shared(
            "counter", "trtllm_num_requests_completed_total", "Requests that ended.", labels
        )
        self._reused = Shared(
            "counter", "trtllm_kv_cache_reused_blocks_total", "Blocks found in the cache.", labels
        )
        self._missed = Shared(
            "counter", "trtllm_kv_cache_missed_blocks_total", "Blocks not found there.", labels
        )
        self._prefills = SharedHistogram(
            "trtllm_prefill_batch_tokens", "Prompt tokens of a step.", labels, BATCH_BOUNDS
        )
        self._scheduled = Shared(
            *("gauge", "trtllm_scheduled_batch_size", "Requests of the last step."), per_process
        )
        self.scheduled = self._scheduled.at(rank="0")
        self._static = {
            "max_num_active_requests": config.max_sequences,
            "max_batch_size_static": config.max_sequences,
            "max_batch_size_runtime": config.max_sequences,
            "max_num_tokens_runtime": config.max_batched_tokens,
            "kv_cache_max_blocks": config.kv_blocks,
            "kv_cache_tokens_per_block": config.block_size,
        }
        self._block_size = config.block_size
        self._read = False
        self._waiting: list[int] = []  # prompt tokens of steps that are not read yet
        self._configure(labels, spec)

    def _configure(self, labels: Mapping[str, str], spec: EngineSpec) -> None:
        size = dict(spec.options).get("tp-size", "1")
        told = {
            "parallel_config_info": {
                "tensor_parallel_size": size,
                "pipeline_parallel_size": "1",
                "context_parallel_size": "1",
                "gpu_count": size,
            },
            "kv_cache_config_info": {
                "enable_block_reuse": str(spec.config.prefix_caching),
                "enable_partial_reuse": "True",
                "free_gpu_memory_fraction": str(spec.gpu_memory_utilization),
                "cache_dtype": "auto",
            },
        }
        for name, described in told.items():
            self._gauge(name).at(**described).set(1)

    def observe(self, steps: Sequence[Step]) -> None:
        """Steps, which are read from the first on that ends a request until it idles."""
        if steps and steps[0].latency_s > IDLE_S:
            self._read = False
        self._waiting += (step.context_tokens for step in steps if step.context_tokens)
        completed = sum(step.completed for step in steps)
        self._read = self._read or completed > 0
        if not steps or not self._read:
            return
        for tokens in self._waiting:
            self._prefills.at().observe(tokens)
        self._waiting.clear()
        if completed:
            self._completed.at().add(completed)
        self.tell(steps[-1])

    def rest(self) -> None:
        """Nothing runs and nothing waits."""
        for name in ("num_requests_running", "num_requests_waiting"):
            self._gauge(name).at().set(0)

    def tell(self, step: Step) -> None:
        """Put the gauges to what a step says."""
        found, missed = step.found // self._block_size, step.looked_up - step.found
        values: dict[str, float] = {
            "num_requests_running": step.running,
            "num_requests_waiting": step.waiting,
            "iteration_latency_seconds": step.latency_s,
            "kv_cache_utilization": step.blocks / self._blocks,
            "kv_cache_used_blocks": step.blocks,
            "kv_cache_free_blocks": self._blocks - step.blocks,
            "kv_cache_hit_rate": step.found / step.looked_up if step.looked_up else 0.0,
            "num_context_requests": step.contexts,
            "num_generation_requests": step.scheduled - step.contexts,
            "num_paused_requests": 0,
            "num_scheduled_requests": step.scheduled,
            "total_context_tokens": step.context_tokens,
            "avg_decoded_tokens_per_iter": 1.0,
            "prefill_batch_occupancy": step.contexts / self._max_active,
        }
        for name, value in (values | self._static).items():
            self._gauge(name).at().set(value)
        for family, blocks in ((self._reused, found), (self._missed, missed // self._block_size)):
            if blocks:
                family.at().value = blocks

    def _gauge(self, name: str) -> Shared:
        family = self._gauges.get(name)
        if family is None:
            text = name.replace("_", " ").capitalize()
            family = Shared("gauge", f"trtllm_{name}", text, self._per_process)
            self._gauges[name] = family
        return family

    def render(self) -> str:
        """The exposition."""
        families: tuple[Shared | SharedHistogram, ...] = (
            *(*self._gauges.values(), self._completed, self._reused, self._missed),
            *(self._prefills, self._scheduled),
        )
        return "".join(family.render() for family in families)
