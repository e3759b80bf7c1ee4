"""TensorRT-LLM's metrics: families as its source has them, figures that agree with what ran."""

import random
from pathlib import Path

from modelserve.adapters import gauges
from modelserve.engines import tensorrt_llm
from servelab.engine.assembly import EngineSpec
from servelab.engine.checks import exposition
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics.tensorrt_llm import REQUESTS, STEPS, Exporter

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics" / "tensorrt-llm-1.3.txt"
# Of memory and the GPU's name, which nothing here foretells; of caches that are not told apart.
LEFT_OUT = {
    *("trtllm_gpu_memory_usage_bytes", "trtllm_cpu_memory_usage_bytes"),
    *("trtllm_pinned_memory_usage_bytes", "trtllm_model_config_info"),
    *("trtllm_prompt_cache_hit_tokens_total", "trtllm_kv_cache_host_utilization"),
    *("trtllm_kv_cache_iter_reuse_rate", "trtllm_kv_cache_iter_reused_blocks_total"),
    "trtllm_kv_cache_iter_full_reused_blocks_total",
    "trtllm_kv_cache_iter_partial_reused_blocks_total",
    *("trtllm_kv_cache_iter_missed_blocks_total", "trtllm_kv_cache_gen_alloc_blocks_total"),
    *("trtllm_kv_cache_onboard_bytes_total", "trtllm_kv_cache_offload_bytes_total"),
    "trtllm_kv_cache_disk_prefetch_blocks_total",
    "trtllm_kv_cache_intra_device_copy_bytes_total",
}
LABELS = 'engine_type="pytorch",model_name="llama-8b"'
GAUGE = f'{{{LABELS},pid="1"}}'


class Same:
    """Tokens that are all alike."""

    def ids(self, first: int, count: int) -> list[int]:
        return [7] * count


def engine(*options: str) -> tuple[EngineCore, Exporter]:
    config = CoreConfig(4, 512, 2048, kv_blocks=100, prefix_caching=True)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    given = tuple((name, "") for name in options)
    profile = tensorrt_llm.PROFILE
    spec = EngineSpec("llama-8b", "m", config, SteadyLaw(0.01), 0.9, 1, profile, given)
    return core, Exporter(spec, core)


def worked() -> tuple[EngineCore, Exporter]:
    """One request, the same again, and one whose client goes."""
    core, exporter = engine(REQUESTS, STEPS)
    for name, at_s in (("a", 0.0), ("b", 1.0), ("c", 2.0)):
        core.submit(CoreRequest(name, 90, 20, tokens=Same()), at_s)
        exporter.observe(list(core.advance(at_s + (0.5 if name != "c" else 0.05))))
    core.cancel("c", 2.05)
    exporter.observe(list(core.advance(3.0)))
    exporter.count_error(400)
    return core, exporter


def test_all_families_are_the_real_ones() -> None:
    listed = [family for family in exposition.listed(GOLDEN) if family.name not in LEFT_OUT]
    ours = exposition.exported(worked()[1].render())
    assert exposition.differences(listed, ours) == []


def test_figures_agree_with_what_ran() -> None:
    text = worked()[1].render()
    assert f"trtllm_generation_tokens_total{{{LABELS}}} 40.0\n" in text
    assert f"trtllm_num_requests_completed_total{{{LABELS}}} 2.0\n" in text
    assert f"trtllm_prompt_cached_tokens_total{{{LABELS}}} 80.0\n" in text
    assert f"trtllm_e2e_request_latency_seconds_count{{{LABELS}}} 2.0\n" in text


def test_no_time_of_creation_is_told() -> None:
    assert "_created" not in worked()[1].render()


def test_steps_are_read_from_the_first_request_that_ends_on() -> None:
    core, exporter = engine(REQUESTS, STEPS)
    core.submit(CoreRequest("a", 90, 20), 0.0)
    core.submit(CoreRequest("b", 90, 100), 0.0)
    assert f"trtllm_num_requests_running{GAUGE} 0.0\n" in exporter.render()
    exporter.observe(list(core.advance(0.1)))
    assert f"trtllm_num_requests_running{GAUGE} 0.0\n" in exporter.render()
    exporter.observe(list(core.advance(0.5)))
    assert f"trtllm_num_requests_running{GAUGE} 1.0\n" in exporter.render()
    exporter.observe(list(core.advance(5.0)))
    assert f"trtllm_num_requests_running{GAUGE} 0.0\n" in exporter.render()


def test_an_engine_whose_clients_have_gone_rests() -> None:
    core, exporter = engine(REQUESTS, STEPS)
    core.submit(CoreRequest("a", 90, 5), 0.0)
    core.submit(CoreRequest("b", 90, 100), 0.0)
    exporter.observe(list(core.advance(0.5)))
    assert f"trtllm_num_requests_running{GAUGE} 1.0\n" in exporter.render()
    core.cancel("b", 0.5)
    exporter.observe(list(core.advance(1.0)))
    assert f"trtllm_num_requests_running{GAUGE} 0.0\n" in exporter.render()


def test_the_operator_finds_the_load() -> None:
    assert gauges.parse_queue(worked()[1].render().encode(), tensorrt_llm.PROFILE.metrics)


def test_without_the_option_no_steps_are_kept() -> None:
    core, exporter = engine(REQUESTS)
    core.submit(CoreRequest("a", 90, 5), 0.0)
    exporter.observe(list(core.advance(1.0)))
    assert exporter.steps is None
    assert "trtllm_num_requests_running" not in exporter.render()
    assert "trtllm_time_to_first_token_seconds_count" in exporter.render()
