"""What a node still checks of a pod that is bound to it."""

from typing import Any

import pytest

from servelab.node.rules import admission

NODE = {
    "metadata": {"name": "n", "labels": {"disk": "ssd"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "3"}},
}


def pod(phase: str = "Running", **asked: str) -> dict[str, Any]:
    requests = {name.replace("gpu", "nvidia.com/gpu"): value for name, value in asked.items()}
    containers = [{"name": "a", "resources": {"requests": requests}}]
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": containers},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("asked", "others", "told"),
    [
        ({"gpu": "2"}, [], None),
        ({"gpu": "2"}, [pod(gpu="1")], ("nvidia.com/gpu", 2, 1, 2)),
        ({"gpu": "2"}, [pod("Succeeded", gpu="2")], None),
        ({"cpu": "4500m"}, [pod(cpu="250m")], ("cpu", 4500, 250, 4000)),
        ({"memory": "9Gi"}, [], ("memory", 9 * 2**30, 0, 8 * 2**30)),
        ({}, [pod(), pod(), pod()], ("pods", 1, 3, 3)),
        ({"example.com/unknown": "5"}, [], None),
    ],
    ids=["fits", "gpus", "over", "cpu", "memory", "pods", "unknown"],
)
def test_what_does_not_fit_is_told_in_a_kubelets_words(asked: Any, others: Any, told: Any) -> None:
    found = admission.admit(pod(**asked), NODE, others)
    if told is None:
        assert found is None
        return
    name, wanted, used, capacity = told
    text = f"{name}, requested: {wanted}, used: {used}, capacity: {capacity}"
    assert found == (f"OutOf{name}", f"Node didn't have enough resource: {text}")


def test_a_selector_that_does_not_match_is_refused() -> None:
    chosen = pod()
    chosen["spec"]["nodeSelector"] = {"disk": "tape"}
    found = admission.admit(chosen, NODE, [])
    assert found is not None
    assert found[0] == "NodeAffinity"
    assert found[1].startswith("Predicate NodeAffinity failed: node(s) didn't match Pod's node")


def needing(*expressions: Any, **fields: Any) -> dict[str, Any]:
    """The required node affinity of a spec."""
    term = {"matchExpressions": list(expressions), **fields}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


TAPE = {"key": "disk", "operator": "In", "values": ["tape"]}
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
NAMED = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
LOST = {"key": "lost", "effect": "NoExecute"}
FULL = {"key": "full", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "taints", "reason"),
    [
        (needing(SSD), [], None),
        (needing(TAPE), [], "NodeAffinity"),
        (needing(matchFields=NAMED), [], None),
        (needing(TAPE, matchFields=NAMED), [], "NodeAffinity"),
        (needing(), [], "NodeAffinity"),
        ({}, [FULL], None),
        ({}, [LOST], "TaintToleration"),
        ({"tolerations": [{"operator": "Exists"}]}, [LOST], None),
    ],
)
def test_where_a_pod_is_not_wanted_it_is_refused(spec: Any, taints: Any, reason: Any) -> None:
    asking = pod()
    asking["spec"] |= spec
    found = admission.admit(asking, NODE | {"spec": {"taints": taints}}, [])
    assert (found and found[0]) == reason


def listening(**port: Any) -> dict[str, Any]:
    found = pod()
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 80, **port}]
    return found


@pytest.mark.parametrize(
    ("one", "other", "free"),
    [
        ({}, {}, True),
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
    ],
)
def test_a_port_of_the_host_is_given_once(one: Any, other: Any, free: bool) -> None:
    found = admission.admit(listening(**one), NODE, [listening(**other)])
    assert (found is None) is free
    assert free or found == (
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    )


def test_on_the_hosts_network_every_port_is_the_hosts() -> None:
    shared = listening()
    shared["spec"]["hostNetwork"] = True
    assert admission.admit(shared, NODE, [shared]) is not None


def test_init_containers_count_only_where_they_need_more() -> None:
    asking = pod(cpu="1")
    asking["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "init", "resources": {"requests": {"cpu": "3"}}},
    ]
    assert admission.requests(asking)["cpu"] == 4
