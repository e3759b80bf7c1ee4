"""Points run through the simulated engine."""

import random
from typing import Any

import pytest

from modelserve.catalog import gpus, models
from modelserve.engines import steplaw
from servelab.engine.core.schedule import CoreConfig
from servelab.engine.core.stepping import EngineCore
from servelab.validation import loads, points, scoring, simulating

ROW: dict[str, Any] = {
    "id": "a",
    "kind": "decode_b1",
    "quality": "A",
    "model": "llama-8b",
    "gpu": "h100-sxm",
    "tp": 1,
    "weights": "bf16",
    "engine": "vllm 0.12",
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
    seen = loads.closed_loop(core(), [(100, 20)] * 12, clients, ramp_s=0.1)
    assert len(seen.finishes) == 12
    starts = sorted((f.arrived_s, 1) for f in seen.finishes)
    ends = sorted((f.at_s, -1) for f in seen.finishes)
    level = highest = 0
    for _, change in sorted([*starts, *ends]):
        level += change
        highest = max(highest, level)
    assert highest == clients


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
