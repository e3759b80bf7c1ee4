"""SGLang's metrics: families as its own collectors have them, figures that agree with what ran."""

import random
from pathlib import Path

from modelserve.engines import sglang
from servelab.engine.assembly import EngineSpec
from servelab.engine.checks import exposition
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics.sglang import Exporter
from servelab.engine.surfaces.sglang import startup

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics" / "sglang-0.5.23.txt"
# Of processes and GPU memory, which nothing here foretells; of data parallelism.
LEFT_OUT = {
    *("sglang:new_token_ratio", "sglang:routing_key_running_req_count"),
    *("sglang:routing_key_all_req_count", "sglang:weight_memory_usage_gb"),
    *("sglang:kv_cache_memory_usage_gb", "sglang:graph_memory_usage_gb"),
    *("sglang:startup_available_gpu_memory_gb", "sglang:scheduler_idle_seconds_total"),
    *("sglang:scheduler_process_cpu_seconds_total", "sglang:scheduler_stage_seconds_total"),
    *("sglang:dp_attention_tokens_total", "sglang:dp_attention_steps_total"),
    *("sglang:dp_attention_pairs_total", "sglang:dp_attention_token_imbalance_ratio"),
    *("sglang:dp_attention_sync_wait_seconds", "sglang:get_loads_duration_seconds"),
}


class Same:
    """Tokens that are all alike."""

    def ids(self, first: int, count: int) -> list[int]:
        return [7] * count


def worked() -> Exporter:
    """Two requests, of which one streams; too little room, so that one is put back; one is cut."""
    config = CoreConfig(4, 512, 2048, kv_blocks=13, prefix_caching=True)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    spec = EngineSpec("llama-8b", "m", config, SteadyLaw(0.01), 0.9, 1, sglang.PROFILE)
    exporter = Exporter(spec, core)
    for name in ("a", "b"):
        core.submit(CoreRequest(name, 90, 60, tokens=Same()), 0.0)
    exporter.taken(["b"], stream=True)
    exporter.observe(list(core.advance(5.0)))
    core.submit(CoreRequest("c", 90, 60, tokens=Same()), 5.0)
    exporter.observe(list(core.advance(5.2)))
    core.cancel("c", 5.2)
    exporter.observe(list(core.advance(6.0)))
    exporter.http.astray("/x", "GET", 404)
    exporter.started(startup.times(30.0, ()))
    return exporter


def test_all_families_are_the_real_ones() -> None:
    listed = [family for family in exposition.listed(GOLDEN) if family.name not in LEFT_OUT]
    ours = exposition.exported(worked().render())
    assert exposition.differences(listed, ours) == []


def test_figures_agree_with_what_ran() -> None:
    text = worked().render()
    labels = 'engine_type="unified",is_streaming="true",model_name="llama-8b"'
    assert f"sglang:generation_tokens_total{{{labels}}} 60.0\n" in text
    assert f"sglang:num_requests_total{{{labels}}} 1.0\n" in text
    assert f"sglang:time_to_first_token_seconds_count{{{labels}}} 1.0\n" in text


def test_no_time_of_creation_is_told() -> None:
    assert "_created" not in worked().render()


def test_a_fresh_engine_tells_gauges_alone() -> None:
    config = CoreConfig(4, 512, 2048, kv_blocks=13)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    spec = EngineSpec("llama-8b", "m", config, SteadyLaw(0.01), 0.9, 1, sglang.PROFILE)
    types = exposition.types(Exporter(spec, core).render())
    counters = {name for name, kind in types.items() if kind != "gauge"}
    assert counters == {"sglang:prefill_effective_tokens_total"}
