"""GPUs that pods take."""

from typing import Any

from servelab.node import usage


def pod(node: str, *gpus: int, phase: str = "Running") -> dict[str, Any]:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": str(count)}}} for count in gpus]
    return {"spec": {"nodeName": node, "containers": containers}, "status": {"phase": phase}}


def test_gpus_are_summed_by_node() -> None:
    pods = [pod("a", 1, 2), pod("a", 4), pod("b", 8)]
    assert usage.gpus_by_node(pods) == {"a": 7, "b": 8}


def test_pods_that_have_ended_take_none() -> None:
    assert usage.gpus_by_node([pod("a", 4, phase="Succeeded")]) == {}


def test_a_request_and_its_limit_count_once() -> None:
    both = {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    assert usage.gpus_of({"spec": {"containers": [{"resources": both}]}}) == 2
