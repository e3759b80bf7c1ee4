"""What a recording tells of the node and registry where it was made."""

import json
from pathlib import Path
from typing import Any

import pytest

from modelserve.api import names
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
        "b:1": {"sizeBytes": 9, "pullSeconds": 120.0},
        "c:1": {"missing": True, "error": "rpc error: no"},
    }


def test_a_full_node_tells_its_size() -> None:
    text = "Node didn't have enough resource: cpu, requested: 9000, used: 100, capacity: 2000"
    assert surroundings.capacity([with_events(text)])["cpu"] == "2000m"


def test_the_node_has_gpus_for_all_pods_at_once() -> None:
    asking = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": "6"}}}
    found = [
        surroundings.capacity([with_pod(asking, [], reason="x", message="y")] * n)["gpusPerNode"]
        for n in (1, 2, 20)
    ]
    assert found == [8, 12, 64]


def test_conditions_of_others_are_found_and_a_kubelets_are_not() -> None:
    real = comparing.read(FILE)
    assert [surroundings.foreign_conditions(each) for each in real] == [[]] * len(real)
    gate = {"type": "example.com/Warm", "status": "True"}
    body = with_events().model_dump(by_alias=True)
    body["updates"] = [{"t": 3, "type": "MODIFIED", "status": {"conditions": [gate]}}] * 2
    found = surroundings.foreign_conditions(recording.Scenario.model_validate(body))
    assert found == [(3.0, gate)]


def with_pod(container: Any, volumes: Any, **event: Any) -> recording.Scenario:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "volumes": volumes}}
    body = {"scenario": "s", "pod": pod, "updates": [], "events": [{"type": "Warning", **event}]}
    return recording.Scenario.model_validate(body)


def words(scenario: recording.Scenario) -> Any:
    return json.loads(surroundings.annotations(scenario)[names.BEHAVIOR])


@pytest.mark.parametrize(("kind", "known"), [("hostPath", True), ("secret", False)])
def test_a_volume_of_the_node_that_could_not_be_mounted_is_a_word(kind: str, known: bool) -> None:
    container = {"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    text = 'MountVolume.SetUp failed for volume "v" : no such directory'
    found = with_pod(container, [{"name": "v", kind: {}}], reason="FailedMount", message=text)
    expected = {"a": {"mountErrors": {"v": "no such directory"}}} if known else {}
    assert words(found) == expected


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("failed: no such file", {"probePrints": "no such file"}),
        (
            "errored and resulted in unknown state: OCI runtime exec failed: x",
            {"probeError": "OCI runtime exec failed: x"},
        ),
        ("errored and resulted in unknown state: no running task found", None),
    ],
)
def test_what_an_exec_probe_said_is_a_word(said: str, word: Any) -> None:
    container = {"name": "a", "readinessProbe": {"exec": {"command": ["x"]}}}
    event = {"message": f"Readiness probe {said}", "fieldPath": "spec.containers{a}"}
    found = with_pod(container, [], reason="Unhealthy", **event)
    assert words(found) == ({} if word is None else {"a": word})


def test_an_eviction_is_known_by_its_condition() -> None:
    body = with_events().model_dump(by_alias=True)
    told = {"type": "DisruptionTarget", "status": "True", "reason": surroundings.EVICTED}
    body["updates"] = [{"t": 3, "type": "MODIFIED", "status": {"conditions": [told]}}]
    assert surroundings.is_evicted(recording.Scenario.model_validate(body))
    assert not surroundings.is_evicted(with_events())


@pytest.mark.parametrize(("text", "seconds"), [("41ms", 0.041), ("1m3.2s", 63.2), ("1h0m0s", 3600)])
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert surroundings.seconds(text) == pytest.approx(seconds)
