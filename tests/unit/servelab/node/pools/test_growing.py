"""Elastic pools: nodes come for pods that wait, and go when nobody is on them."""

from typing import Any

import pytest

from modelserve.api import conditions, names
from servelab.node.pools import draining


async def test_a_pod_without_a_node_brings_one_ready_first_and_its_gpus_last(grounds: Any) -> None:
    grounds.pool(nodes=grounds.elastic)
    began = grounds.now
    assert await grounds.reconcile(grounds.waiting("p")) == began + 70
    assert grounds.events == [
        ("p", "TriggeredScaleUp", "pod triggered scale-up: [{dgx 0->1 (max: 2)}]")
    ]
    assert (grounds.node_names(), grounds.status()["provisioningNodes"]) == ([], 1)
    assert await grounds.reconcile(grounds.waiting("p"), after=70) == began + 90
    young = grounds.node()
    assert conditions.is_true(young, "Ready")
    assert "nvidia.com/gpu" not in young["status"]["allocatable"]
    assert not any(label.startswith("nvidia.com/") for label in young["metadata"]["labels"])


async def test_a_machine_boots_on_while_the_emulator_is_away(grounds: Any) -> None:
    grounds.pool(nodes=grounds.elastic)
    await grounds.reconcile(grounds.waiting("p"))
    assert [each["node"] for each in grounds.status()["booting"]] == ["dgx-0"]
    grounds.restart()
    due = await grounds.reconcile(grounds.waiting("p"), after=80)
    assert due == pytest.approx(grounds.now + 10)
    assert (grounds.node_names(), grounds.status()["booting"]) == (["dgx-0"], [])


async def test_a_new_nodes_gpus_come_with_their_labels(grounds: Any) -> None:
    await grounds.stand()
    node = grounds.node()
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert node["metadata"]["labels"]["nvidia.com/gfd.timestamp"] == str(int(grounds.now))
    await grounds.reconcile(grounds.waiting("p"))
    assert (grounds.status()["gpus"], grounds.status()["provisioningNodes"]) == (8, 0)


async def test_no_more_nodes_come_than_the_pool_has_at_most(grounds: Any) -> None:
    grounds.pool(nodes=grounds.elastic)
    await grounds.reconcile(*(grounds.waiting(name) for name in ("a", "b", "c")))
    assert grounds.status()["provisioningNodes"] == 2
    refusal = "pod didn't trigger scale-up: 1 max node group size reached"
    assert grounds.events[-1] == ("c", "NotTriggerScaleUp", refusal)
    await grounds.reconcile(*(grounds.waiting(name) for name in ("a", "b", "c")))
    assert len(grounds.events) == 3


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"gpus": 9}, id="too-many"),
        pytest.param({"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4"}}, id="elsewhere"),
        pytest.param({"tolerations": []}, id="intolerant"),
        pytest.param({"gpus": 0}, id="no-gpu"),
    ],
)
async def test_a_pod_that_no_node_of_the_pool_would_take_brings_none(
    grounds: Any, fields: dict[str, Any]
) -> None:
    grounds.pool(nodes=grounds.elastic)
    await grounds.reconcile(grounds.waiting("p", **fields))
    assert grounds.status()["provisioningNodes"] == 0


async def test_small_pods_share_the_node_they_wait_for(grounds: Any) -> None:
    grounds.pool(nodes=grounds.elastic)
    await grounds.reconcile(*(grounds.waiting(name, gpus=4) for name in ("a", "b")))
    assert grounds.status()["provisioningNodes"] == 1


async def test_a_node_idle_for_long_is_tainted_and_then_goes(grounds: Any) -> None:
    await grounds.stand()
    daemon = grounds.bound("d", ownerReferences=[{"kind": "DaemonSet"}])
    assert await grounds.reconcile(daemon) == grounds.now + 600
    await grounds.reconcile(daemon, after=600)
    assert grounds.node()["spec"]["unschedulable"] is True
    assert any(t["key"].startswith("ToBeDeleted") for t in grounds.node()["spec"]["taints"])
    await grounds.reconcile(daemon, after=1)
    assert grounds.node_names() == []
    assert [reason for _, reason, _ in grounds.events] == ["ScaleDown", "ScaleDown"]


async def test_a_node_goes_when_it_would_have_though_the_emulator_was_away(grounds: Any) -> None:
    await grounds.stand()
    await grounds.reconcile()
    assert [each["node"] for each in grounds.status()["idle"]] == ["dgx-0"]
    grounds.restart()
    due = await grounds.reconcile(after=grounds.elastic["idleSeconds"] - 1)
    assert due == pytest.approx(grounds.now + 1)
    await grounds.reconcile(after=1)
    assert grounds.node()["spec"]["unschedulable"]


async def test_a_node_with_a_pod_stays(grounds: Any) -> None:
    await grounds.stand()
    await grounds.reconcile(grounds.bound("p"), after=10_000)
    assert draining.gone_at_s(grounds.node()) is None


async def test_a_pod_that_comes_at_the_last_moment_keeps_the_node(grounds: Any) -> None:
    await grounds.stand()
    await grounds.reconcile()
    await grounds.reconcile(after=600)
    await grounds.reconcile(grounds.bound("p"))
    assert draining.gone_at_s(grounds.node()) is None
    assert "unschedulable" not in grounds.node()["spec"]


async def test_while_the_last_node_boots_the_others_tell_that_one_comes(grounds: Any) -> None:
    await grounds.stand()
    both = grounds.bound("p"), grounds.waiting("q")
    said = []
    for passed in (0, 70, 20, 0):
        await grounds.reconcile(*both, after=passed)
        annotations = grounds.node()["metadata"]["annotations"]
        said.append((len(grounds.node_names()), annotations.get(names.PROVISIONING_SECONDS)))
    # It boots; it is up without its GPUs; it gets them; and then no more can come.
    assert said == [(1, "90"), (2, "90"), (2, "90"), (2, None)]
