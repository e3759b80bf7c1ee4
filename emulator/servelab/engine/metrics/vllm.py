"""An engine's /metrics with vLLM's names, labels, buckets; durations in emulated seconds.

They are 0.33's unless the engine's image is of an earlier version: see ``vllm_names``.
"""

from collections.abc import Sequence

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics import vllm_names, vllm_values
from servelab.engine.metrics.exporting import Load
from servelab.engine.metrics.gaps import Gaps
from servelab.engine.metrics.series import FRESH_VALUES, Family, Histogram, one_two_five
from servelab.engine.metrics.vllm_old import OldFamilies, Renamed

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
_CACHE_HIT = vllm_values.PROMPT_SOURCES.index("local_cache_hit")
_REASON_AT = {reason: place for place, reason in enumerate(vllm_values.REASONS)}


def exporter(spec: EngineSpec, load: Load, created_unix_s: float) -> "Exporter":
    """The exporter of an engine."""
    cache = vllm_values.CacheConfig(
        *(spec.config.block_size, spec.config.kv_blocks, spec.gpu_memory_utilization),
        prefix_caching=spec.config.prefix_caching,
    )
    names = vllm_names.of(spec.image, dict(spec.options))
    limit = spec.config.max_model_tokens
    return Exporter(load, spec.served_name, cache, limit, created_unix_s, names)


class Exporter:
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    content_type = CONTENT_TYPE

    def __init__(
        self,
        load: Load,
        model_name: str,
        cache: vllm_values.CacheConfig,
        max_model_tokens: int,
        created_unix_s: float,
        names: vllm_names.Names | None = None,
    ) -> None:
        self._load = load
        self._max_model_tokens = max_model_tokens
        self._names = names or vllm_names.Names()
        self._model_name = model_name
        self._created_unix_s = created_unix_s
        self._families: list[Family | Histogram | Renamed] = []
        self._ended: list[Finish] = []  # requests that no histogram has yet
        self._build_load(cache)
        self._build_counts()
        self._build_times()
        self._old = OldFamilies(self._names, self._labels(), created_unix_s)
        self._families += self._old.families
        self._families += self._old.renamed(
            {
                "request_params_best_of": self._params_n,
                "gpu_cache_usage_perc": self._kv_usage,
                "gpu_prefix_cache_queries": self._prefix_queries,
                "gpu_prefix_cache_hits": self._prefix_hits,
                "time_per_output_token_seconds": self._itl,
                "time_in_queue_requests": self._queue_time,
            }
        )

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        self._old.observe(outputs)
        for output in outputs:
            self._gaps.observe(output)
            self._observe_tokens(output)
            if output.prefill_tokens or output.ids:
                self._observe_iterations(output)
            self._preemptions.add(len(output.preempted))
            for finish in output.finished:
                self._observe_finish(finish)

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """Count the parameters of a request that was taken."""
        self._params_n.observe(n)
        if max_tokens is not None:
            self._params_max_tokens.observe(max_tokens)

    def count_rejection(self) -> None:
        """Count a request refused because too many wait."""
        self._rejections.add(1)

    def render(self) -> str:
        """The exposition in the text format."""
        load = self._load
        self._count_ended()
        self._running.set(load.running)
        self._waiting.set(load.waiting)
        self._waiting_by_reason.set(load.waiting)
        self._kv_usage.set(load.kv_usage)
        queries, hits = load.prefix_tokens
        self._prefix_queries.set(queries)
        self._prefix_hits.set(hits)
        self._cached_by_tier.set(hits, vllm_values.CACHE_TIERS.index("device"))
        self._old.set(self.totals, hits / queries if queries else 0.0)
        return "".join(family.render() for family in self._families)

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        return self._prompt_tokens.values[0], self._generation_tokens.values[0]

    def _observe_tokens(self, output: Output) -> None:
        self._generation_tokens.add(len(output.ids) * len(output.times_s))
        for first in output.firsts:
            self._ttft.observe(first.at_s - first.arrived_s)
            self._prompt_tokens.add(first.prompt_tokens)
            self._prompt_by_source.add(first.prompt_tokens - first.cached_tokens)
            self._prompt_by_source.add(first.cached_tokens, _CACHE_HIT)
            self._cached_prompt.add(first.cached_tokens)

    def _observe_iterations(self, output: Output) -> None:
        steps = len(output.times_s)
        prompt = sum(first.prompt_tokens - first.cached_tokens for first in output.firsts)
        self._iteration_tokens.observe(prompt + len(output.ids), 1)
        if steps > 1:
            self._iteration_tokens.observe(len(output.ids), steps - 1)

    def _observe_finish(self, finish: Finish) -> None:
        self._success.add(1, _REASON_AT[finish.reason])
        if finish.reason == FinishReason.ABORT:
            return
        self._ended.append(finish)
        if len(self._ended) >= FRESH_VALUES:
            self._count_ended()

    def _count_ended(self) -> None:
        """Put requests that ended into the histograms: together, that costs a fraction."""
        ended, self._ended = self._ended, []
        times = [
            (each.arrived_s, each.scheduled_s, each.first_token_s, each.last_token_s)
            for each in ended
            if each.scheduled_s is not None
            and each.first_token_s is not None
            and each.last_token_s is not None
        ]
        self._e2e.observe_all([each.at_s - each.arrived_s for each in ended])
        self._queue_time.observe_all([scheduled - arrived for arrived, scheduled, _, _ in times])
        self._prefill_time.observe_all([first - scheduled for _, scheduled, first, _ in times])
        self._decode_time.observe_all([last - first for _, _, first, last in times])
        self._inference_time.observe_all([last - scheduled for _, scheduled, _, last in times])
        gaps = zip(ended, times, strict=True)
        self._tpot.observe_all(
            [
                (last - first) / (each.output_tokens - 1)
                for each, (_, _, first, last) in gaps
                if each.output_tokens > 1
            ]
        )
        computed = [each.prompt_tokens - each.cached_tokens for each in ended]
        made = [each.output_tokens for each in ended]
        self._request_prompt.observe_all([each.prompt_tokens for each in ended])
        self._request_prefill_computed.observe_all(computed)
        self._request_generation.observe_all(made)
        self._request_max_generation.observe_all(made)
        self._request_preemptions.observe_all([each.preemptions for each in ended])

    def _family(
        self, kind: str, name: str, text: str, label: str = "", values: Sequence[str] = ("",)
    ) -> Family:
        labels = self._labels()
        series = [labels | ({label: value} if label else {}) for value in values]
        family = Family(kind, f"vllm:{name}", text, series, self._created_unix_s)
        self._add(name, family)
        return family

    def _histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        created_unix_s = self._created_unix_s
        histogram = Histogram(f"vllm:{name}", text, self._labels(), bounds, created_unix_s)
        self._add(name, histogram)
        return histogram

    def _labels(self) -> dict[str, str]:
        engine = {"engine": "0"} if self._names.labels_engine else {}
        return {**engine, "model_name": self._model_name}

    def _add(self, name: str, family: Family | Histogram) -> None:
        if self._names.has(name):
            self._families.append(family)

    def _build_load(self, cache: vllm_values.CacheConfig) -> None:
        gauge = "gauge"
        self._running = self._family(gauge, "num_requests_running", "Requests in the batch.")
        self._waiting = self._family(gauge, "num_requests_waiting", "Requests in the queue.")
        self._waiting_by_reason = self._family(
            *(gauge, "num_requests_waiting_by_reason", "Requests in the queue, by reason."),
            *("reason", ("capacity", "deferred")),
        )
        sleep = self._family(
            *(gauge, "engine_sleep_state", "1 in the state the engine is in."),
            *("sleep_state", vllm_values.SLEEP_STATES),
        )
        sleep.set(1.0)
        self._kv_usage = self._family(gauge, "kv_cache_usage_perc", "KV blocks in use, 0 to 1.")
        engine = self._names.labels_engine
        info = Family(
            *(gauge, "vllm:cache_config_info", "The KV cache's configuration."),
            *([cache.labels() | ({"engine": "0"} if engine else {})], self._created_unix_s),
        )
        info.set(1.0)
        self._families.append(info)

    def _build_counts(self) -> None:
        counter = "counter"
        for name, text in (
            ("estimated_flops_per_gpu", "Floating-point operations; not estimated here."),
            ("estimated_read_bytes_per_gpu", "Bytes read from memory; not estimated here."),
            ("estimated_write_bytes_per_gpu", "Bytes written to memory; not estimated here."),
        ):
            self._family(counter, name, text)
        self._prefix_queries = self._family(
            counter, "prefix_cache_queries", "Tokens looked up in the prefix cache."
        )
        self._prefix_hits = self._family(
            counter, "prefix_cache_hits", "Tokens found in the prefix cache."
        )
        for name, text in (
            ("external_prefix_cache_queries", "Tokens looked up in external prefix caches."),
            ("external_prefix_cache_hits", "Tokens found in external prefix caches."),
            ("mm_cache_queries", "Items looked up in the multi-modal cache."),
            ("mm_cache_hits", "Items found in the multi-modal cache."),
        ):
            self._family(counter, name, text)
        self._cached_prompt = self._family(
            counter, "prompt_tokens_cached", "Prompt tokens from caches."
        )
        self._cached_by_tier = self._family(
            *(counter, "prompt_tokens_cached_by_source", "Prompt tokens from caches, by tier."),
            *("source", vllm_values.CACHE_TIERS),
        )
        self._preemptions = self._family(counter, "num_preemptions", "Requests preempted.")
        self._prompt_tokens = self._family(counter, "prompt_tokens", "Prompt tokens computed.")
        self._prompt_by_source = self._family(
            *(counter, "prompt_tokens_by_source", "Prompt tokens, by source."),
            *("source", vllm_values.PROMPT_SOURCES),
        )
        self._generation_tokens = self._family(counter, "generation_tokens", "Tokens generated.")
        self._success = self._family(
            *(counter, "request_success", "Requests that ended, by reason."),
            *("finished_reason", vllm_values.REASONS),
        )
        self._rejections = Family(
            *(counter, "vllm:admission_rejections", "Requests refused, by the limit reached."),
            [
                {"model_name": self._model_name, "reason": reason}
                for reason in vllm_values.REJECTIONS
            ],
            self._created_unix_s,
        )
        self._add("admission_rejections", self._rejections)

    def _build_times(self) -> None:
        make = self._histogram
        tokens = one_two_five(self._max_model_tokens)
        times = self._names.request_bounds(vllm_values.REQUEST_TIME_BOUNDS)
        token_times = self._names.token_bounds(vllm_values.TOKEN_TIME_BOUNDS)
        firsts = self._names.first_token_bounds(vllm_values.TTFT_BOUNDS)
        self._request_prompt = make("request_prompt_tokens", "Prompt tokens of a request.", tokens)
        self._request_generation = make("request_generation_tokens", "Tokens of an answer.", tokens)
        self._iteration_tokens = make(
            "iteration_tokens_total", "Tokens of a step.", vllm_values.ITERATION_BOUNDS
        )
        self._request_max_generation = make(
            "request_max_num_generation_tokens", "Longest answer of a request.", tokens
        )
        self._params_n = make("request_params_n", "Parameter n.", (1.0, 2.0, 5.0, 10.0, 20.0))
        self._params_max_tokens = make("request_params_max_tokens", "Parameter max_tokens.", tokens)
        self._ttft = make("time_to_first_token_seconds", "Arrival to first token.", firsts)
        self._itl = make("inter_token_latency_seconds", "Token to token.", token_times)
        self._gaps = Gaps(self._itl.observe)
        self._tpot = make(
            "request_time_per_output_token_seconds", "Mean of a request.", token_times
        )
        self._e2e = make("e2e_request_latency_seconds", "Arrival to last token.", times)
        self._queue_time = make("request_queue_time_seconds", "Time in the queue.", times)
        self._inference_time = make("request_inference_time_seconds", "Time in the batch.", times)
        self._prefill_time = make("request_prefill_time_seconds", "Time in prefill.", times)
        self._decode_time = make("request_decode_time_seconds", "Time in decode.", times)
        self._request_preemptions = make(
            *("request_num_preemptions", "Preemptions of a request."),
            (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0),
        )
        self._request_prefill_computed = make(
            "request_prefill_kv_computed_tokens", "Prompt tokens computed for a request.", tokens
        )
