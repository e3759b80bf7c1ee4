"""What is no recording is told in half a sentence with its place."""

from typing import Any

import pydantic
import pytest

from servelab.policies import recording

KNATIVE: dict[str, Any] = {
    "name": "a",
    "target_per_pod": 1,
    "demand_per_second": [1, 2, 3],
    "ticks": [{"t": 0, "desired": 1}],
}
KUBERNETES: dict[str, Any] = {
    "name": "b",
    "target_average_value": 1,
    "min": 1,
    "max": 4,
    "demand_per_second": [1, 2, 3],
    "syncs": [{"t": 0, "desired": 1}],
}


def fault(value: object) -> str:
    with pytest.raises(pydantic.ValidationError) as caught:
        recording.RECORDING.validate_python(value)
    return recording.fault(caught.value)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param({}, "valid list", id="no list"),
        pytest.param([KNATIVE, 7], "ticks (Knative) or syncs (Kubernetes), in case 1", id="case"),
        pytest.param([{"name": "a"}], "in case 0", id="neither kind"),
        pytest.param([KNATIVE | {"target_per_pod": 0}], "case 0 at target_per_pod", id="target"),
        pytest.param(
            [KNATIVE, KNATIVE | {"demand_per_second": [1, -2, 3]}],
            "in case 1 at demand_per_second.1",
            id="negative demand",
        ),
        pytest.param(
            [KNATIVE | {"demand_per_second": [float("nan")]}], "demand_per_second.0", id="nan"
        ),
        pytest.param([KNATIVE | {"stable_window_s": 1e9}], "at stable_window_s", id="window"),
        pytest.param([KNATIVE | {"max_scale_down_rate": 0}], "max_scale_down_rate", id="rate"),
        pytest.param(
            [KNATIVE | {"ticks": [{"t": 9, "desired": 1}]}],
            "tick 0 is at 9 s, but demand ends at 2 s, in case 0",
            id="beyond the demand",
        ),
        pytest.param(
            [KUBERNETES | {"syncs": [{"t": 1, "desired": 1}] * 2}],
            "sync 1 is at 1 s, not after the one before it",
            id="order",
        ),
        pytest.param([KUBERNETES | {"min": 5}], "min 5 is above max 4, in case 0", id="bounds"),
        pytest.param(
            [KUBERNETES | {"scale_up": {"policies": [{"type": "x", "value": 1, "period_s": 1}]}}],
            "in case 0 at scale_up.policies.0.type",
            id="policy",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(rows: object, said: str) -> None:
    assert said in fault(rows)


def test_one_direction_alone_gets_the_defaults_of_the_api_for_the_other() -> None:
    rules = {"policies": [{"type": "Pods", "value": 1, "period_s": 60}]}
    (case,) = recording.RECORDING.validate_python([KUBERNETES | {"scale_up": rules}])
    assert isinstance(case, recording.KubernetesCase)
    behavior = case.scaler().behavior
    assert behavior is not None
    assert (behavior.up.window_s, behavior.down.window_s) == (0, 300)
    assert len(behavior.down.rates) == 1
