"""Metrics: names and buckets of vLLM, and figures that agree with what happened."""

import random

from prometheus_client.parser import text_string_to_metric_families

from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics.series import one_two_five
from servelab.engine.metrics.vllm import Exporter
from servelab.engine.metrics.vllm_values import CacheConfig


class Ones:
    def ids(self, first: int, count: int) -> list[int]:
        return [1] * count


def engine(max_sequences: int = 2, *, prefix_caching: bool = False) -> tuple[EngineCore, Exporter]:
    config = CoreConfig(max_sequences, 512, 8192, kv_blocks=1000, prefix_caching=prefix_caching)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    return core, Exporter(core, "llama-8b", CacheConfig(16, 1000, 0.9), 8192, 1.7e9)


def values(exporter: Exporter) -> dict[str, float]:
    """Every sample by name and the labels that tell series of a name apart."""
    found = {}
    for family in text_string_to_metric_families(exporter.render()):
        for sample in family.samples:
            rest = {k: v for k, v in sample.labels.items() if k not in ("engine", "model_name")}
            found[sample.name + "".join(f"/{v}" for v in rest.values())] = sample.value
    return found


def test_waiting_and_running_are_what_the_core_has() -> None:
    core, exporter = engine()
    for name in "abcde":
        core.submit(CoreRequest(name, 100, 5), 0.0)
    exporter.observe(core.advance(0.0))
    seen = values(exporter)
    assert seen["vllm:num_requests_running"] == 2
    assert seen["vllm:num_requests_waiting"] == 3
    assert seen["vllm:kv_cache_usage_perc"] > 0


def test_n_tokens_have_one_first_token_and_n_minus_one_gaps() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.observe(core.advance(1.0))
    seen = values(exporter)
    assert seen["vllm:time_to_first_token_seconds_count"] == 1
    assert seen["vllm:inter_token_latency_seconds_count"] == 4
    assert seen["vllm:generation_tokens_total"] == 5
    assert seen["vllm:prompt_tokens_total"] == 100
    assert seen["vllm:request_success_total/length"] == 1


def test_first_token_time_and_gaps_add_up_to_the_whole() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.observe(core.advance(1.0))
    seen = values(exporter)
    parts = ("vllm:time_to_first_token_seconds_sum", "vllm:inter_token_latency_seconds_sum")
    assert (
        abs(sum(seen[part] for part in parts) - seen["vllm:e2e_request_latency_seconds_sum"]) < 1e-9
    )


def test_a_cancelled_request_counts_as_abort_and_gauges_go_back_to_zero() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 500), 0.0)
    exporter.observe(core.advance(0.05))
    core.cancel("a", 0.055)
    exporter.observe(core.advance(1.0))
    seen = values(exporter)
    assert seen["vllm:request_success_total/abort"] == 1
    assert seen["vllm:num_requests_running"] == seen["vllm:kv_cache_usage_perc"] == 0


def test_a_histogram_counts_a_value_on_its_bound_below_it() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 1), 0.0)
    exporter.observe(core.advance(1.0))
    seen = values(exporter)
    assert seen["vllm:request_prompt_tokens_bucket/100.0"] == 1
    assert seen["vllm:request_prompt_tokens_bucket/50.0"] == 0


def test_token_buckets_end_at_the_model_length() -> None:
    assert one_two_five(120) == [1, 2, 5, 10, 20, 50, 100]


def test_prompt_tokens_found_in_the_cache_are_counted_as_such() -> None:
    core, exporter = engine(prefix_caching=True)
    for name in "ab":
        core.submit(CoreRequest(name, 100, 2, tokens=Ones()), 0.0)
    exporter.observe(core.advance(1.0))
    seen = values(exporter)
    assert seen["vllm:prefix_cache_queries_total"] == 200
    assert seen["vllm:prefix_cache_hits_total"] == 96
    assert seen["vllm:prompt_tokens_cached_total"] == 96
    assert seen["vllm:prompt_tokens_cached_by_source_total/device"] == 96
    assert seen["vllm:prompt_tokens_by_source_total/local_compute"] == 104
    assert seen["vllm:prompt_tokens_by_source_total/local_cache_hit"] == 96
    assert seen["vllm:prompt_tokens_total"] == 200
    assert seen["vllm:request_prefill_kv_computed_tokens_sum"] == 104


def test_without_the_cache_nothing_is_looked_up() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 2, tokens=Ones()), 0.0)
    exporter.observe(core.advance(1.0))
    assert values(exporter)["vllm:prefix_cache_queries_total"] == 0
