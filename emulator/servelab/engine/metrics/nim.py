"""NIM's /v1/metrics: old vLLM's names without a prefix; durations in emulated seconds.

Names, texts, labels and buckets are of a recording of a NIM 1.x (DataDog/integrations-core,
nvidia_nim/tests/fixtures). Left out are the ``python_…`` and ``process_…`` families before them,
which tell of the real server's process.
"""

from collections.abc import Sequence

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics.exporting import Load
from servelab.engine.metrics.gaps import Gaps
from servelab.engine.metrics.series import Family, Histogram, Shared, one_two_five

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0),
    *(2.5, 5.0, 7.5, 10.0),
)
TOKEN_TIME_BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
REQUEST_TIME_BOUNDS = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)


def exporter(spec: EngineSpec, load: Load, created_unix_s: float) -> "Exporter":
    """The exporter of an engine."""
    config = spec.config
    return Exporter(load, spec.served_name, config.max_sequences, config.max_model_tokens)


class Exporter:
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    content_type = CONTENT_TYPE

    def __init__(
        self, load: Load, model_name: str, max_sequences: int, max_model_tokens: int
    ) -> None:
        self._load = load
        self._labels = {"model_name": model_name}
        self._families: list[Family | Histogram | Shared] = []
        self._running = self._gauge(
            "num_requests_running", "Number of requests currently running on GPU."
        )
        self._waiting = self._gauge(
            "num_requests_waiting", "Number of requests waiting to be processed."
        )
        most = self._gauge("num_request_max", "Max number of concurrently running requests.")
        most.set(max_sequences)
        self._kv_usage = self._gauge(
            "gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage."
        )
        self._prompt = self._counter("prompt_tokens", "Number of prefill tokens processed.")
        self._generated = self._counter(
            "generation_tokens", "Number of generation tokens processed."
        )
        self._build_histograms(one_two_five(max_model_tokens))
        self._finish = Shared(
            *("counter", "request_finish_total"),
            "Count of finished requests, differentiated by finish reason as label.",
            self._labels,
        )
        self._families.append(self._finish)
        self._success = self._counter("request_success", "Count of successful requests.")
        self._failure = self._counter("request_failure", "Count of failed requests.")

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        return self._prompt.values[0], self._generated.values[0]

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        for output in outputs:
            self._gaps.observe(output)
            self._generated.add(len(output.ids) * len(output.times_s))
            for first in output.firsts:
                self._ttft.observe(first.at_s - first.arrived_s)
                self._prompt.add(first.prompt_tokens)
            for finish in output.finished:
                self._observe_finish(finish)

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """It tells nothing of parameters."""

    def count_rejection(self) -> None:
        """It lets all wait."""

    def count_answer(self, status: int) -> None:
        """Count a failure; a body that is no request is none."""
        if status >= 500:
            self._failure.add(1)

    def render(self) -> str:
        """The exposition in the text format."""
        load = self._load
        self._running.set(load.running)
        self._waiting.set(load.waiting)
        self._kv_usage.set(load.kv_usage)
        return "".join(family.render() for family in self._families)

    def _observe_finish(self, finish: Finish) -> None:
        self._finish.at(finished_reason=finish.reason).add(1)
        if finish.reason == FinishReason.ABORT:
            return
        self._success.add(1)
        self._e2e.observe(finish.at_s - finish.arrived_s)
        self._request_prompt.observe(finish.prompt_tokens)
        self._request_generation.observe(finish.output_tokens)

    def _gauge(self, name: str, text: str) -> Family:
        return self._family("gauge", name, text)

    def _counter(self, name: str, text: str) -> Family:
        return self._family("counter", name, text)

    def _family(self, kind: str, name: str, text: str) -> Family:
        family = Family(kind, name, text, [self._labels])
        self._families.append(family)
        return family

    def _histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        histogram = Histogram(name, text, self._labels, bounds)
        self._families.append(histogram)
        return histogram

    def _build_histograms(self, lengths: Sequence[float]) -> None:
        make = self._histogram
        self._ttft = make(
            *("time_to_first_token_seconds", "Histogram of time to first token in seconds."),
            TTFT_BOUNDS,
        )
        self._gaps = Gaps(
            make(
                "time_per_output_token_seconds",
                "Histogram of time per output token in seconds.",
                TOKEN_TIME_BOUNDS,
            ).observe
        )
        self._e2e = make(
            "e2e_request_latency_seconds",
            "Histogram of end to end request latency in seconds.",
            REQUEST_TIME_BOUNDS,
        )
        self._request_prompt = make(
            "request_prompt_tokens", "Number of prefill tokens processed.", lengths
        )
        self._request_generation = make(
            "request_generation_tokens", "Number of generation tokens processed.", lengths
        )
