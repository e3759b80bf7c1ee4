"""What a spec leaves out, resolved."""

import math

import pytest

from modelserve.api import spec as api
from modelserve.decide import gaps, observation


def test_the_parameters_of_a_spec_resolve_what_it_leaves_out() -> None:
    spec = api.ModelServeSpec.model_validate({"model": {"name": "m"}, "gpu": {"product": "g"}})
    got = observation.Parameters.of(spec, slots=16, cold_start_s=200, service_s=4)
    assert (got.down.window_s, got.cooldown_s) == (100, 300)
    assert got.goal_s == pytest.approx(2 * math.sqrt(200))
    assert (got.target, got.progress_deadline_s) == (12.8, 600)
    assert got.up == observation.DEFAULT_UP


def after(*gaps_s: float) -> gaps.Gaps:
    found = gaps.Gaps()
    for gap_s in gaps_s:
        found = gaps.add(found, gap_s)
    return found


@pytest.mark.parametrize(
    ("wanted_s", "cold_start_s", "idle", "expected"),
    [
        pytest.param(30, 200, after(*[100] * 20), 30, id="as the spec says"),
        pytest.param(None, 200, after(*[20] * 9), 300, id="the upper end until there are ten gaps"),
        pytest.param(None, 400, after(), 400, id="never below the cold start"),
        pytest.param(None, 60, after(*[110] * 200), 113, id="the p99 of the idle gaps"),
        pytest.param(None, 60, after(*[20] * 200), 60, id="but not below the cold start"),
        pytest.param(None, 60, after(*[110] * 20), 300, id="few gaps say little of the longest"),
        pytest.param(None, 60, after(*[900] * 20), 60, id="gaps that nothing bridges are let go"),
    ],
)
def test_the_cooldown(
    wanted_s: float | None, cold_start_s: float, idle: gaps.Gaps, expected: float
) -> None:
    assert round(observation.cooldown_s(wanted_s, cold_start_s, idle)) == expected
