"""Points run through the simulated engine."""

import random
import statistics
from typing import Any

import pytest

from modelserve.catalog import constants, gpus, models
from modelserve.engines import kv, steplaw
from modelserve.engines.types import EngineType
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.stepping import EngineCore
from servelab.validation import conditions, loads, points, scoring, simulating

ROW: dict[str, Any] = {
    "id": "a",
    "kind": "decode_b1",
    "quality": "A",
    "model": "llama-8b",
    "gpu": "h100-sxm",
    "tp": 1,
    "weights": "bf16",
    "engine": "vllm 0.20",
    "input": 512,
    "output": 64,
    "load": {"concurrency": 1},
    "metrics": {"tpot_ms": 7.8},
}
LAW = steplaw.StepLaw.of(models.find("llama-8b"), gpus.find("h100"), 1)


def point(**changes: Any) -> points.Point:
    return points.parse({"points": [{**ROW, **changes}]}, "test")[0]


def core() -> EngineCore:
    return EngineCore(CoreConfig(64, 8192, 8192, 4096), LAW, random.Random(0))


def test_alone_the_engine_takes_what_the_law_says() -> None:
    simulated = simulating.simulate(point())["tpot_ms"]
    assert simulated == pytest.approx(LAW.decode_step_s(1, 544) * 1e3, rel=0.01)


def test_a_prompt_alone_takes_the_law_and_the_front_end() -> None:
    ttft = point(kind="prefill_b1", metrics={"ttft_ms": 1})
    assert simulating.simulate(ttft)["ttft_ms"] == pytest.approx(LAW.first_token_s(512) * 1e3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"quality": "C"}, "quality C", id="doubtful"),
        pytest.param({"kind": "cold_start"}, "not about a running engine", id="kind"),
        pytest.param({"model": "no-such"}, "unknown model", id="model"),
        pytest.param({"gpu": "no-such"}, "unknown GPU", id="gpu"),
        pytest.param({"engine": "llama.cpp"}, "is not emulated", id="engine"),
        pytest.param({"weights": "q8"}, "no format", id="weights"),
        pytest.param({"metrics": {}}, "has no tpot_ms", id="metric"),
        pytest.param({"input": None}, "no input or output length", id="length"),
        pytest.param({"model": "llama-70b"}, "does not fit", id="fit"),
        pytest.param({"kind": "loaded", "load": {}}, "no load.concurrency", id="load"),
    ],
)
def test_a_point_that_cannot_be_run_says_why(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(simulating.CannotRun, match=reason):
        simulating.simulate(point(**changes))


@pytest.mark.parametrize("clients", [1, 4])
def test_a_closed_loop_answers_every_request_and_keeps_its_clients(clients: int) -> None:
    seen = loads.closed_loop(core(), [(100, 20)] * 12, clients)
    assert len(seen.finishes) == 12
    starts = sorted((f.arrived_s, 1) for f in seen.finishes)
    ends = sorted((f.at_s, -1) for f in seen.finishes)
    level = highest = 0
    for _, change in sorted([*starts, *ends]):
        level += change
        highest = max(highest, level)
    assert highest == clients


def test_an_older_engine_is_simulated_as_it_was() -> None:
    older, newer = (simulating.simulate(point(engine=name)) for name in ("vLLM 0.7.3", "vLLM 0.20"))
    assert older["tpot_ms"] > 1.1 * newer["tpot_ms"]


def test_a_source_that_measures_in_the_process_has_no_http_in_its_first_token() -> None:
    over_http, inside = (
        simulating.simulate(point(kind="prefill_b1", metrics={"ttft_ms": 1}, source=source))
        for source in ("", "rocm")
    )
    http_ms = constants.load().http_front_s * 1e3
    assert over_http["ttft_ms"] - inside["ttft_ms"] == pytest.approx(http_ms)


@pytest.mark.parametrize(
    ("weights", "source", "engine", "share"),
    [
        pytest.param("fp8", "imax", "vllm", 2, id="as the source set it"),
        pytest.param("fp8", "aic-nv", "vllm", 1, id="not by default"),
        pytest.param("bf16", "imax", "vllm", 1, id="not with 16-bit weights"),
        pytest.param("fp8", "aic-nv", "trtllm", 2, id="by the checkpoint's scales"),
    ],
)
def test_the_kv_cache_is_fp8_where_the_run_had_it_so(
    weights: str, source: str, engine: str, share: int
) -> None:
    row = {"kind": "kv_capacity", "metrics": {"kv_tokens": 1}, "weights": weights}
    found = simulating.simulate(point(source=source, engine=engine, **row))["kv_tokens"]
    kind = simulating.engine_type(engine) or EngineType.VLLM
    quantization = "fp8" if weights == "fp8" else "none"
    at_16_bit = kv.capacity_tokens(
        models.find("llama-8b"), gpus.find("h100"), 1, quantization, engine=kind
    )
    assert found == pytest.approx(share * at_16_bit, abs=16)


def test_tensorrt_llm_starts_no_more_than_it_can_finish() -> None:
    row = {"kind": "saturation", "input": 1000, "output": 1000, "engine": "TensorRT-LLM 0.17"}
    bench = simulating.bench(point(metrics={"output_tokens_s": 1}, **row))
    assert bench.config.policy is Policy.NO_EVICT


def test_vllm_before_0_8_takes_a_prompt_whole() -> None:
    long = point(engine="vLLM 0.7.3", source="accelmark", input=28_650, output=256)
    assert simulating.bench(long).config.max_batched_tokens == 30_208


@pytest.mark.parametrize(
    ("stated", "count", "prompt_mean", "answer_mean"),
    [((280, 310), 100, 256, 347), ((280, 310), 150, 250, 352), ((95, 150), 200, 103, 210)],
)
def test_chat_lengths_are_those_that_the_runs_report(
    stated: tuple[int, int], count: int, prompt_mean: float, answer_mean: float
) -> None:
    lengths = conditions.of("accelmark").lengths(*stated, count, random.Random(0))
    prompts, answers = zip(*lengths, strict=True)
    assert statistics.mean(prompts) == pytest.approx(prompt_mean, rel=0.04)
    assert statistics.mean(answers) == pytest.approx(answer_mean, rel=0.03)


def test_an_open_loop_sends_at_its_own_rate() -> None:
    seen = loads.open_loop(core(), [(100, 20)] * 200, 10.0, random.Random(1))
    assert max(f.arrived_s for f in seen.finishes) == pytest.approx(20, rel=0.25)


def test_scaling_is_scored_by_its_speed_up() -> None:
    rows = [
        point(
            id=f"tp{size}",
            group="g",
            kind="tp_scaling",
            tp=size,
            load={"offline_requests": 20},
            metrics={"output_tokens_s": 1000.0 * size},
        )
        for size in (1, 2)
    ]
    report = scoring.run(rows)
    assert [(s.metric, s.measured) for s in report.main] == [(scoring.SPEED_UP, 2.0)]
    assert [one.id for one in report.skipped] == ["tp1"]


def test_the_document_has_the_published_shape() -> None:
    document = scoring.run([point(), point(id="b", quality="C")]).to_json()
    assert (document["points"], document["scored"]) == (2, 1)
    assert document["by_kind"]["decode_b1"]["metric"] == "tpot_ms"
    assert document["skipped"][0]["id"] == "b"
    assert document["worst"][0].keys() == {"id", "metric", "measured", "simulated"}


def test_the_same_points_give_the_same_figures() -> None:
    rows = [point(kind="loaded", source="imax", load={"concurrency": 8})]
    assert scoring.run(rows).to_json() == scoring.run(rows).to_json()
