"""What a pool says of its GPUs."""

from typing import Any

from servelab.node.pools import poolstatus


def pod(node: str, *gpus: int, phase: str = "Running") -> dict[str, Any]:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": str(count)}}} for count in gpus]
    return {"spec": {"nodeName": node, "containers": containers}, "status": {"phase": phase}}


async def test_gpus_in_use_are_counted(grounds: Any) -> None:
    grounds.pool()
    await grounds.reconcile()
    await grounds.reconcile(pod("dgx-0", 3))
    assert grounds.status()["gpusInUse"] == 3


def test_gpus_are_summed_by_node() -> None:
    found = [pod("a", 1, 2), pod("a", 4), pod("b", 8)]
    assert poolstatus.gpus_by_node(found) == {"a": 7, "b": 8}


def test_pods_that_have_ended_take_none() -> None:
    assert poolstatus.gpus_by_node([pod("a", 4, phase="Succeeded")]) == {}
