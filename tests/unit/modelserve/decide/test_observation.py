"""What a spec leaves out, resolved."""

import pytest

from modelserve.api import spec as api
from modelserve.decide import observation


def test_the_parameters_of_a_spec_resolve_what_it_leaves_out() -> None:
    spec = api.ModelServeSpec.model_validate({"model": {"name": "m"}, "gpu": {"product": "g"}})
    got = observation.Parameters.of(spec, slots=16, cold_start_s=200, service_s=4)
    assert (got.down.window_s, got.cooldown_s, got.goal_s) == (100, 300, 50)
    assert (got.target, got.progress_deadline_s) == (12.8, 600)
    assert got.up == observation.DEFAULT_UP


@pytest.mark.parametrize(
    ("wanted_s", "cold_start_s", "p99_s", "expected"),
    [
        pytest.param(30, 200, 100, 30, id="as the spec says"),
        pytest.param(None, 200, None, 300, id="the upper end until gaps are known"),
        pytest.param(None, 400, None, 400, id="never below the cold start"),
        pytest.param(None, 60, 120, 120, id="the p99 of the idle gaps"),
        pytest.param(None, 60, 20, 60, id="but not below the cold start"),
    ],
)
def test_the_cooldown(
    wanted_s: float | None, cold_start_s: float, p99_s: float | None, expected: float
) -> None:
    assert observation.cooldown_s(wanted_s, cold_start_s, p99_s) == expected
