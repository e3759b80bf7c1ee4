"""What the operator knows: never older than its own writes; GPUs as the scheduler counts them."""

from typing import Any

import pytest

from modelserve.api import names
from modelserve.api.keys import Key
from modelserve.reconciling import world
from modelserve.reconciling.world import World
from modelserve.render import labels, replica_owner

KEY = Key("default", "llama")


def deployment(version: int, replicas: int = 0, uid: str = "d1") -> dict[str, Any]:
    metadata = {
        "name": "llama",
        "namespace": "default",
        "uid": uid,
        "resourceVersion": str(version),
        "labels": labels.of_children("llama"),
        "managedFields": [
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}}}
        ],
    }
    return {"metadata": metadata, "spec": {"replicas": replicas}}


def modelserve(version: int, uid: str = "m1") -> dict[str, Any]:
    meta = {"name": "llama", "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {}}


def test_an_answer_that_comes_after_the_end_does_not_bring_a_modelserve_back() -> None:
    known = World()
    known.put_modelserve(modelserve(1))
    known.drop_modelserve(modelserve(3))
    assert not known.put_modelserve(modelserve(2))
    assert known.modelserves == {}
    assert known.put_modelserve(modelserve(4, uid="m2"))


def scale(version: int, replicas: int, uid: str = "d1") -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "resourceVersion": str(version)},
        "spec": {"replicas": replicas},
    }


def test_writes_of_the_count_one_after_the_other_leave_one_owner_of_it() -> None:
    known = World()
    known.put_deployment(deployment(1))
    for version in range(2, 30):
        known.note_scale(KEY, scale(version, version % 4))
    managers = [entry["manager"] for entry in known.deployments[KEY]["metadata"]["managedFields"]]
    assert managers == ["kubectl", names.SCALER]


def pod(uid: str, node: str = "", gpus: int = 1, phase: str = "Running") -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "metadata": {
            "name": uid,
            "namespace": "default",
            "uid": uid,
            "resourceVersion": "1",
            "labels": labels.of_children("llama"),
        },
        "spec": {"nodeName": node, "containers": [{"resources": resources}]},
        "status": {"phase": phase},
    }


def node(name: str, gpus: int = 8, ready: bool = True, version: int = 1) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": str(version),
            "labels": {names.LABEL_GPU_PRODUCT: "H100"},
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus)},
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastHeartbeatTime": str(version)}
            ],
        },
    }


def test_older_news_of_an_object_is_left_aside() -> None:
    known = World()
    assert known.put_deployment(deployment(5))
    assert not known.put_deployment(deployment(4, replicas=9))
    assert not known.put_deployment(deployment(5))
    assert known.deployments[KEY]["spec"]["replicas"] == 0


def test_our_own_write_is_known_before_the_watch_tells_of_it() -> None:
    known = World()
    known.put_deployment(deployment(5))
    known.note_scale(KEY, scale(7, 3))
    assert not known.put_deployment(deployment(6, replicas=0))
    live = known.deployments[KEY]
    assert replica_owner.live_replicas(live) == 3
    assert replica_owner.replicas_owner(live) is replica_owner.Owner.SCALER


def test_the_scale_of_a_deployment_that_was_replaced_is_left_aside() -> None:
    known = World()
    known.put_deployment(deployment(9, uid="d2"))
    known.note_scale(KEY, scale(7, 3, uid="d1"))
    assert replica_owner.live_replicas(known.deployments[KEY]) == 0


def test_late_news_of_a_deleted_pod_does_not_bring_it_back() -> None:
    known = World()
    known.put_pod(pod("p"))
    known.drop_pod(pod("p"))
    assert known.put_pod(pod("p")) is None
    assert not known.pods_of(KEY)
    assert not known.claims


def test_the_end_of_an_old_deployment_leaves_its_successor() -> None:
    known = World()
    known.put_deployment(deployment(9, uid="d2"))
    known.drop_deployment(deployment(8, uid="d1"))
    assert KEY in known.deployments


def test_free_gpus_are_what_no_bound_pod_has_claimed_on_ready_nodes() -> None:
    known = World()
    for each in (node("a"), node("b", ready=False), node("c", gpus=2)):
        known.put_node(each)
    known.put_pod(pod("p1", "a", gpus=4))
    known.put_pod(pod("p2", "a", gpus=2, phase="Succeeded"))
    known.put_pod(pod("p3", "", gpus=1))
    assert known.free_gpus(known.nodes, "nvidia.com/gpu") == {"a": 4, "c": 2}


def test_nodes_for_a_pod_are_those_that_suit_it_as_they_are_now() -> None:
    known, asking = World(), {"spec": {"nodeSelector": {"zone": "a"}, "tolerations": []}}
    known.put_node(node("a"))
    assert known.nodes_for(asking) == {}
    moved = node("a", version=2)
    moved["metadata"]["labels"]["zone"] = "a"
    assert known.put_node(moved)
    assert known.nodes_for(asking) == {"a": moved}
    tainted = {**moved, "spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}}
    tainted["metadata"] = {**moved["metadata"], "resourceVersion": "3"}
    assert known.put_node(tainted)
    assert known.nodes_for(asking) == {}
    known.drop_node(tainted)
    assert known.nodes_for({"spec": {}}) == {}


def test_what_the_node_controller_says_of_a_node_keeps_no_pod_from_it() -> None:
    known, silent = World(), node("a")
    gone = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    known.put_node({**silent, "spec": {"taints": [gone]}})
    assert list(known.nodes_for({"spec": {}})) == ["a"]


def test_a_nodes_heartbeat_is_no_news() -> None:
    known = World()
    assert known.put_node(node("a"))
    assert not known.put_node(node("a", version=2))
    assert known.put_node(node("a", ready=False, version=3))


@pytest.mark.parametrize(
    ("requests", "limits", "gpus"),
    [({}, {"nvidia.com/gpu": "2"}, 2), ({"nvidia.com/gpu": "1"}, {}, 1), ({"cpu": "1"}, {}, None)],
    ids=["limits", "requests", "none"],
)
def test_a_claim_is_read_from_limits_or_requests(
    requests: dict[str, str], limits: dict[str, str], gpus: int | None
) -> None:
    resources = {"requests": requests, "limits": limits}
    claim = world.gpu_claim({"spec": {"containers": [{"resources": resources}]}})
    assert (claim.gpus if claim else None) == gpus


def model(name: str, created: str, served: str | None = None) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": "1",
        "creationTimestamp": created,
    }
    return {"metadata": metadata, "spec": {"model": {"name": "x", "servedName": served}}}


def test_the_oldest_of_several_models_of_one_served_name_holds_it() -> None:
    known = World()
    first, second = model("b", "2026-01-01T00:00:00Z"), model("a", "2026-01-02T00:00:00Z", "b")
    for body in (first, second, model("c", "2026-01-01T00:00:00Z")):
        known.put_modelserve(body)
    assert known.name_holder(first) is None
    assert known.name_holder(second) == Key("default", "b")
    assert known.namesakes(first) == [Key("default", "a")]
