"""A pod that is to be written once: what may wait, and what may not."""

from typing import Any

import pytest

from servelab.node.rules import profiles

CREATING = {"waiting": {"reason": "ContainerCreating"}}


def status(state: dict[str, Any], restarts: int = 0, **rest: Any) -> dict[str, Any]:
    entry = {"name": "main", "state": state, "restartCount": restarts}
    return {"phase": "Pending", "containerStatuses": [entry], **rest}


def test_a_pod_that_is_starting_can_wait() -> None:
    assert profiles.can_wait(status(CREATING))


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(status({"running": {}}, phase="Running"), id="runs"),
        pytest.param(status({"waiting": {"reason": "ErrImagePull"}}), id="cannot pull"),
        pytest.param(status({"waiting": {"reason": "CreateContainerConfigError"}}), id="config"),
        pytest.param(status(CREATING, restarts=1), id="starts again"),
        pytest.param({"phase": "Failed", "reason": "OutOfcpu"}, id="rejected"),
        pytest.param(status({"terminated": {"exitCode": 0}}, phase="Succeeded"), id="ended"),
    ],
)
def test_what_somebody_would_look_for_cannot(told: dict[str, Any]) -> None:
    assert not profiles.can_wait(told)


def test_warnings_are_told_all_the_same() -> None:
    assert [kind for kind in ("Normal", "Warning") if profiles.is_told(kind)] == ["Warning"]
