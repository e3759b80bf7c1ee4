"""Triton's metrics: names as its source has them, figures that agree with what ran."""

import random
from pathlib import Path

import pytest

from modelserve.adapters import gauges
from modelserve.engines import triton as profile
from servelab.engine.checks import exposition, lint
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics.triton import BLS_MODEL, Exporter

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics" / "triton-2.61.0.txt"


def engine(max_sequences: int = 4) -> tuple[EngineCore, Exporter]:
    config = CoreConfig(max_sequences, 512, 2048, kv_blocks=1000)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    return core, Exporter(core, "llama-8b", max_sequences, 1000, 16)


def test_all_families_are_tritons() -> None:
    ours = exposition.exported(engine()[1].render())
    assert exposition.differences(exposition.listed(GOLDEN), ours) == []


def test_the_gauges_that_scalers_read_are_the_cores() -> None:
    core, exporter = engine(max_sequences=2)
    for name in "abc":
        core.submit(CoreRequest(name, 100, 5), 0.0)
    exporter.observe(core.advance(0.0))
    found = gauges.parse_queue(exporter.render().encode(), profile.PROFILE.metrics)
    assert found == pytest.approx((1, 2, core.kv_usage))


def test_a_finished_request_counts_for_the_ensemble_and_its_steps() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.observe(core.advance(1.0))
    text = exporter.render()
    assert 'nv_inference_request_success{model="llama-8b",version="1"} 1\n' in text
    assert 'nv_inference_request_success{model="preprocessing",version="1"} 1\n' in text
    assert 'response_metric_type="total_output_tokens",version="1"} 5\n' in text
    assert 'nv_inference_request_duration_us{model="tensorrt_llm",version="1"} 50' in text


def test_a_request_to_the_other_text_model_counts_for_that_one() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.attribute(["a"], BLS_MODEL, 1_700_000_000_000)
    exporter.observe(core.advance(1.0))
    counts = {m: exporter.statistics(m).durations["success"][0] for m in ("llama-8b", BLS_MODEL)}
    assert counts == {"llama-8b": 0, BLS_MODEL: 1}


def test_statistics_are_what_the_metrics_are_in_nanoseconds() -> None:
    core, exporter = engine()
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.attribute(["a"], "llama-8b", 1_700_000_000_000)
    exporter.observe(core.advance(1.0))
    found = exporter.statistics("llama-8b")
    assert (found.executions, found.last_unix_ms) == (1, 1_700_000_000_000)
    count, ns = found.durations["success"]
    assert (count, ns // 1_000_000) == (1, 50)


def test_a_refused_request_is_a_rejection() -> None:
    _, exporter = engine()
    exporter.count_rejection()
    wanted = '{model="llama-8b",reason="REJECTED",version="1"} 1\n'
    assert f"nv_inference_request_failure{wanted}" in exporter.render()


def test_promtool_faults_real_names_only() -> None:
    faults = {fault.partition(" ")[2] for fault in lint.problems(engine()[1].render())}
    assert faults == {
        'counter metrics should have "_total" suffix',
        "metric names should not contain abbreviated units",
        'non-histogram and non-summary metrics should not have "_count" suffix',
    }
