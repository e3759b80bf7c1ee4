"""What the tokenizer's process of an SGLang server tells Prometheus: of requests, and its start."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics.gaps import Gaps
from servelab.engine.metrics.series import Shared, SharedHistogram

# Buckets and labels: sglang/srt/observability/metrics_collector.py of 0.5.23.
TTFT_BOUNDS = (
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0),
    *(100.0, 200.0, 400.0),
)
E2E_BOUNDS = (*TTFT_BOUNDS, 600.0, 1200.0, 1800.0, 2400.0)
TOKEN_TIME_BOUNDS = (
    *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
)
LENGTH_BOUNDS = (
    *(100.0, 300.0, 500.0, 700.0, 1000.0, 1500.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0),
    *(7000.0, 8000.0, 9000.0, 10000.0, 12500.0, 15000.0, 17500.0, 20000.0, 22500.0, 25000.0),
    *(27500.0, 30000.0, 35000.0, 40000.0, 60000.0, 80000.0, 100000.0, 200000.0, 300000.0),
    *(400000.0, 600000.0, 800000.0, 1000000.0, 1100000.0),
)
START_UP = ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")


class StartUp:
    """How long the start took, by part."""

    def __init__(self, model_name: str) -> None:
        labels = {"model_name": model_name, "engine_type": "unified"}
        prefix = "sglang:startup_"
        self._parts = Shared("gauge", f"{prefix}time_seconds", "The start, by part.", labels)
        text = "Capture of CUDA graphs."
        self._graphs = Shared("gauge", f"{prefix}cuda_graph_time_seconds", text, labels)

    def told(self, times: Mapping[str, Any]) -> None:
        """The start had these parts, in seconds."""
        for phase in START_UP:
            self._parts.at(phase=phase).set(times[phase])
        for phase, took_s in times["cuda_graph"].items():
            self._graphs.at(phase=phase).set(took_s)

    def render(self) -> str:
        """The exposition."""
        return self._parts.render() + self._graphs.render()


class Requests:
    """What the tokenizer's process tells of requests and their answers."""

    def __init__(self, model_name: str) -> None:
        labels = {"model_name": model_name, "engine_type": "unified"}
        self.streams: set[str] = set()

        def counter(name: str, text: str) -> Shared:
            return Shared("counter", f"sglang:{name}", text, labels)

        def histogram(name: str, text: str, bounds: Sequence[float]) -> SharedHistogram:
            return SharedHistogram(f"sglang:{name}", text, labels, bounds)

        self._prompt = counter("prompt_tokens_total", "Prompt tokens.")
        self._generated = counter("generation_tokens_total", "Tokens generated.")
        self._cached = counter("cached_tokens_total", "Prompt tokens from the cache.")
        self._count = counter("num_requests_total", "Requests that ended.")
        self._aborted = counter("num_aborted_requests_total", "Requests aborted.")
        self._ttft = histogram("time_to_first_token_seconds", "To the first token.", TTFT_BOUNDS)
        self._itl = itl = histogram(
            "inter_token_latency_seconds", "Token to token.", TOKEN_TIME_BOUNDS
        )
        # Of all answers, though one that does not stream is told of every 50 tokens only.
        self._gaps = Gaps(lambda gap_s, count: itl.at().observe(gap_s, count))
        self._tpot = histogram(
            "request_time_per_output_token_seconds", "Mean of a request.", TOKEN_TIME_BOUNDS
        )
        self._e2e = histogram("e2e_request_latency_seconds", "To the last token.", E2E_BOUNDS)
        self._lengths = [
            histogram("prompt_tokens_histogram", "Prompt tokens of a request.", LENGTH_BOUNDS),
            histogram("uncached_prompt_tokens_histogram", "Those computed.", LENGTH_BOUNDS),
            histogram("generation_tokens_histogram", "Tokens of an answer.", LENGTH_BOUNDS),
        ]

    def observe(self, output: Output) -> None:
        """Count what the core brought."""
        self._gaps.observe(output)
        for first in output.firsts:
            self._ttft.at(is_streaming=self._side(first.id)).observe(first.at_s - first.arrived_s)
        for finish in output.finished:
            self._observe_finish(finish)

    def _side(self, request_id: str) -> str:
        return "true" if request_id in self.streams else "false"

    def _observe_finish(self, finish: Finish) -> None:
        side = self._side(finish.id)
        self.streams.discard(finish.id)
        if finish.reason == FinishReason.ABORT:
            self._aborted.at().add(1)
            if finish.first_token_s is None:
                return  # it is gone from the queue without a word
        self._prompt.at(is_streaming=side).add(finish.prompt_tokens)
        self._generated.at(is_streaming=side).add(finish.output_tokens)
        if finish.cached_tokens:
            self._cached.at(cache_source="device").add(finish.cached_tokens)
        self._count.at(is_streaming=side).add(1)
        self._e2e.at(is_streaming=side).observe(finish.at_s - finish.arrived_s)
        first_s, last_s = finish.first_token_s, finish.last_token_s
        whole = finish.reason != FinishReason.ABORT and finish.output_tokens > 1
        if whole and first_s is not None and last_s is not None:
            tpot_s = (last_s - first_s) / (finish.output_tokens - 1)
            self._tpot.at(is_streaming=side).observe(tpot_s)
        computed = finish.prompt_tokens - finish.cached_tokens
        values = (finish.prompt_tokens, computed, finish.output_tokens)
        for family, value in zip(self._lengths, values, strict=True):
            family.at().observe(value)

    def render(self) -> str:
        """The exposition."""
        families: tuple[Shared | SharedHistogram, ...] = (
            *(self._prompt, self._generated, self._cached, self._count, self._aborted),
            *(self._ttft, self._itl, self._tpot, self._e2e, *self._lengths),
        )
        return "".join(family.render() for family in families)
