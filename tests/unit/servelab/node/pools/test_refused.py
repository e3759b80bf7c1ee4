"""Pools that cannot be: they say why, and nothing else suffers."""

from typing import Any

import pytest


async def test_an_unknown_gpu_is_a_condition(grounds: Any) -> None:
    grounds.pool(gpu="NVIDIA-H1000")
    await grounds.reconcile()
    assert (grounds.said()["status"], grounds.said()["reason"]) == ("False", "InvalidSpec")
    assert "unknown GPU 'NVIDIA-H1000'" in grounds.said()["message"]


@pytest.mark.parametrize("fields", [{"gpu": "potato"}, {"mig": {"profiles": {"1g.5gb": 7}}}])
async def test_a_pool_changed_to_one_that_cannot_be_leaves_its_nodes_as_they_are(
    grounds: Any, fields: dict[str, Any]
) -> None:
    grounds.pool()
    await grounds.reconcile()
    grounds.pool(**fields)
    written = len(grounds.writes)
    await grounds.keeper.refresh(grounds.node(), [])
    assert len(grounds.writes) == written


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"nodes": 9000}, "9000 nodes of 8 GPUs have room for more pods than the 65534 addresses"),
        ({"mig": {"profiles": {"1g.5gb": 7}}}, "has no profile '1g.5gb'; it has 1g.10gb"),
        ({"mig": {"profiles": {"1g.10gb": 7}}, "gpu": "l4"}, "NVIDIA-L4 cannot be cut"),
        ({"mig": {"profiles": {"1g.10gb": 2}}, "gpu": "mi300x"}, "MI300X_OAM cannot be cut"),
        ({"gpu": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}, "cut it with spec.mig.profiles: {1g.10gb"),
        ({"mig": {"strategy": "mixed", "profiles": {"4g.40gb": 2}}}, "8 of 7 compute"),
        ({"nodes": {"min": 3, "max": 2}}, "spec.nodes: min 3 is more than max 2; raise max"),
        ({"nodes": {"min": 3}}, "spec.nodes.max: Field required"),
        ({"nodes": -1}, "spec.nodes: Input should be greater than or equal to 0"),
        ({"gpu": "mi300x", "devices": "DRA"}, "DRA is for NVIDIA's GPUs"),
        ({"cpu": "-1"}, "spec.cpu: '-1' is no amount; write for instance 96"),
        ({"disk": "1Gb"}, "spec.disk: '1Gb' is no amount"),
        ({"memory": "0Gi"}, "spec.memory: '0Gi' must be greater than zero"),
        ({"labels": {"my team": "a"}}, "spec.labels: 'my team' is no label's name"),
        ({"labels": {"team": "a b"}}, "spec.labels: 'a b' is no value of a label"),
        ({"taints": [{"key": "a b", "effect": "NoSchedule"}]}, "spec.taints.0.key: "),
        ({"nodes": {"max": 1, "foo": 1}}, "spec.nodes: there is no field foo; there are min, max,"),
        ({"cpu": "1m"}, "spec.cpu: 1m is less than one CPU"),
        ({"memory": "1"}, "spec.memory: 1 is no more than the 100Mi that a kubelet keeps free"),
        ({"disk": "1Ki"}, "spec.disk: 1Ki is no more than the 50Mi that one container's logs"),
        (
            {"faults": [{"type": "XID", "gpus": 64}]},
            "spec.faults.0.gpus: 64 GPUs are more than the 8 of a node",
        ),
        (
            {"faults": [{"type": "NodeLost", "nodes": ["no-such"]}]},
            "spec.faults.0.nodes.0: pool dgx never has a node no-such: the first is dgx-0",
        ),
        (
            {"labels": {"kubernetes.io/hostname": "a"}},
            "spec.labels: kubernetes.io/hostname is every node's own",
        ),
        (
            {"taints": [{"key": "a", "effect": "NoExecute", "value": v} for v in "bc"]},
            "spec.taints: a:NoExecute is there twice; leave one out",
        ),
        (
            {"kubelet": {"imageGcHighThresholdPercent": 10}},
            "spec.kubelet: imageGcLowThresholdPercent 80 is not less than",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_pool_that_cannot_be_is_flagged_with_a_sentence(
    grounds: Any, fields: dict[str, Any], text: str
) -> None:
    grounds.pool(**fields)
    await grounds.reconcile()
    assert text in grounds.said()["message"]
    assert grounds.node_names() == []


async def test_a_small_machine_a_fault_of_its_own_and_two_like_taints_are_possible(
    grounds: Any,
) -> None:
    small = {"cpu": "1", "memory": "101Mi", "disk": "51Mi"}
    faults = [{"type": "XID", "gpus": 8, "nodes": ["dgx-0"]}]
    taints = [{"key": "a", "effect": effect} for effect in ("NoExecute", "NoSchedule")]
    grounds.pool(**small, faults=faults, taints=taints)
    await grounds.reconcile()
    assert grounds.node_names() == ["dgx-0"]


async def test_a_pool_whose_nodes_could_not_be_named_is_flagged(grounds: Any) -> None:
    grounds.pool("d" * 60, nodes={"max": 1000})
    await grounds.reconcile()
    assert "-999 would have a name of 64 characters" in grounds.said("d" * 60)["message"]


async def test_a_pool_that_the_api_server_refuses_does_not_hold_up_the_others(
    grounds: Any,
) -> None:
    grounds.refused = "a-wrong-one-0"
    grounds.pool("a-wrong-one")
    grounds.pool()
    await grounds.reconcile()
    assert grounds.node_names() == ["dgx-0"]
    told = grounds.said("a-wrong-one")
    assert (told["reason"], told["message"]) == ("InvalidSpec", "no such thing")
