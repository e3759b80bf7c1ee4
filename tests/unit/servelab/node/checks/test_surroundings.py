"""What a recording tells of the node and registry where it was made."""

from pathlib import Path
from typing import Any

import pytest

from servelab.node.checks import comparing, recording, surroundings

FILE = Path(__file__).parent / "recordings" / "kubelet-1.37.2.json"


def with_events(*messages: str) -> recording.Scenario:
    events = [{"type": "Normal", "reason": "x", "message": message} for message in messages]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}
    body: dict[str, Any] = {"scenario": "s", "pod": pod, "updates": [], "events": events}
    return recording.Scenario.model_validate(body)


def test_images_are_read_from_the_events() -> None:
    found = surroundings.images(
        with_events(
            'Container image "a:1" already present on machine and can be accessed by the pod',
            'Successfully pulled image "b:1" in 1m1.5s (2m0s including waiting). '
            "Image size: 9 bytes.",
            'Failed to pull image "c:1": rpc error: no',
        )
    )
    assert found == {
        "a:1": {"present": True},
        "b:1": {"sizeBytes": 9, "pullSeconds": 61.5},
        "c:1": {"missing": True, "error": "rpc error: no"},
    }


def test_a_full_node_tells_its_size() -> None:
    text = "Node didn't have enough resource: cpu, requested: 9000, used: 100, capacity: 2000"
    assert surroundings.capacity([with_events(text)]) == {"cpu": "2000m"}


def test_conditions_of_others_are_found_and_a_kubelets_are_not() -> None:
    real = comparing.read(FILE)
    assert [surroundings.foreign_conditions(each) for each in real] == [[]] * len(real)
    gate = {"type": "example.com/Warm", "status": "True"}
    body = with_events().model_dump(by_alias=True)
    body["updates"] = [{"t": 3, "type": "MODIFIED", "status": {"conditions": [gate]}}] * 2
    found = surroundings.foreign_conditions(recording.Scenario.model_validate(body))
    assert found == [(3.0, gate)]


@pytest.mark.parametrize(("text", "seconds"), [("41ms", 0.041), ("1m3.2s", 63.2), ("1h0m0s", 3600)])
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert surroundings.seconds(text) == pytest.approx(seconds)
