"""Readiness gates: when a kubelet takes notice of what others write."""

from typing import Any

GATE = "example.com/warm"
GATES = [{"conditionType": GATE}]
MISSING = {"images": {"nothing:1": {"missing": True}}}
SIDE = {"name": "side", "image": "docker.io/library/busybox:1", "restartPolicy": "Always"}


def condition(status: str) -> dict[str, str]:
    return {"type": GATE, "status": status}


def back_offs(pod: Any) -> int:
    return sum(len(at) for key, at in pod.events.items() if key[1] == "BackOff")


def test_a_gate_of_a_pod_whose_containers_are_ready_makes_it_ready(play: Any) -> None:
    pod = play(readinessGates=GATES).run(5)
    assert pod.condition("Ready")["status"] == "False"
    pod.condition_written(condition("True"))
    assert pod.run(8).condition("Ready")["status"] == "True"


def test_a_gate_changes_nothing_while_containers_are_not_ready(play: Any) -> None:
    waits = play(container={"image": "nothing:1"}, readinessGates=GATES, **MISSING).run(5)
    told = back_offs(waits)
    waits.condition_written(condition("True"))
    assert back_offs(waits.run(7)) == told


def test_of_a_pod_with_gates_and_sidecars_each_status_is_answered_with_a_sync(play: Any) -> None:
    told = {}
    for gates in ([], GATES):
        pod = play(
            container={"image": "nothing:1"}, initContainers=[SIDE], readinessGates=gates, **MISSING
        )
        told[bool(gates)] = back_offs(pod.run(9))
    assert told[True] > told[False]


def test_a_probe_that_finds_a_sidecar_ready_tells_of_readiness_alone(play: Any) -> None:
    side = SIDE | {
        "startupProbe": {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1},
        "readinessProbe": {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1},
    }
    deaf = {"behaviors": {"side": {"ignoresTerm": True}}}
    pod = play(initContainers=[side], terminationGracePeriodSeconds=8, **deaf)
    pod.run(0.25).delete(8).run(5)
    assert pod.container(kind="initContainerStatuses")["ready"]
    assert pod.condition("Initialized")["status"] == "False"
