"""What the demo reports follows from what it saw."""

import dataclasses

import pytest

from servelab.demo import results, table
from servelab.trial import answer


def outcome(wait_real_s: float, problem: str = "") -> answer.Outcome:
    return answer.Outcome(0.0, 10.0, 10.0 + wait_real_s, 20.0, 200, 5, problem)


RESULT = results.Result(
    time_scale=10.0,
    wall_s=100.0,
    length_s=600.0,
    cold=[outcome(12.0)],
    warm=[outcome(0.01), outcome(0.02), outcome(0.03)],
    scaled_to_zero=True,
    wake=results.Wake(0.012, 0.06, 12.0),
    predicted={"imagePullSeconds": 77.7, "totalSeconds": 119.8},
    measured={"imagePullSeconds": 78.1, "totalSeconds": 121.9},
    replicas=[(0.0, 0.0), (60.0, 1.0), (120.0, 3.0), (300.0, 0.0)],
    gpus_per_replica=2,
)


def test_waits_are_emulated_seconds() -> None:
    assert RESULT.waits_s(RESULT.cold) == [pytest.approx(120.0)]
    assert RESULT.percentiles(RESULT.warm)[0] == pytest.approx(0.2)


def test_gpu_minutes_are_the_area_under_the_replicas() -> None:
    assert RESULT.gpu_minutes == pytest.approx((60 * 1 + 180 * 3) * 2 / 60)


def test_all_is_well_only_if_every_answer_came_and_it_is_back_at_zero() -> None:
    failed = dataclasses.replace(RESULT, warm=[outcome(0.1, "cut")])
    awake = dataclasses.replace(RESULT, scaled_to_zero=False)
    nothing = dataclasses.replace(RESULT, cold=[], warm=[])
    assert [r.ok for r in (RESULT, failed, awake, nothing)] == [True, False, False, False]


def test_the_json_has_the_agreed_fields() -> None:
    told = RESULT.to_json()
    assert told["ok"] is True
    assert (told["requests"], told["errors"], told["peak_replicas"]) == (4, 0, 3)
    assert told["cold_start"]["measured"]["totalSeconds"] == 121.9
    assert told["ttft_cold_s"] == pytest.approx(120.0)
    assert {"scaled_to_zero", "ttft_p95_s", "gpu_minutes", "wall_s"} <= set(told)


def test_percentiles_of_nothing_are_null() -> None:
    assert dataclasses.replace(RESULT, warm=[]).to_json()["ttft_p95_s"] is None


def test_only_known_parts_of_a_cold_start_are_taken() -> None:
    assert results.parts({"totalSeconds": 1, "samples": 3}) == {"totalSeconds": 1.0}
    assert results.parts(None) == {}


def test_the_table_shows_prediction_beside_measurement() -> None:
    text = table.render(RESULT)
    assert "image pull                           77.7       78.1" in text
    assert "weight load" not in text
    assert "From zero to 3 and back: every request got its answer." in text


def test_the_table_names_what_failed() -> None:
    bad = dataclasses.replace(RESULT, warm=[outcome(0.1, "status 503: full")], scaled_to_zero=False)
    text = table.render(bad)
    assert "failed: status 503: full" in text
    assert "1 requests did not get their answer, and the model did not come back to zero" in text
