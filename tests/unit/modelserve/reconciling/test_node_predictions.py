"""What the operator predicts for the next replica, by what nodes say of themselves."""

import json
from typing import Any

import pytest

from modelserve import ports
from modelserve.api import names
from modelserve.testing.stage import Stage

VLLM = "docker.io/vllm/vllm-openai"
WARM = '{"meta-llama/Llama-3.1-8B-Instruct@none": 16060522496}'


async def predicted(stage: Stage) -> Any:
    await stage.clock.advance(10)  # Figures alone are written every ten seconds.
    await stage.turn(times=2)
    return (await stage.status())["coldStart"]["predicted"]


async def tell(stage: Stage, body: dict[str, Any], node: str = "dgx-0") -> None:
    where = "status" if "status" in body else ""
    await stage.cluster.patch(ports.NODES, None, node, body, subresource=where)


async def annotate(stage: Stage, annotations: dict[str, str]) -> None:
    await tell(stage, {"metadata": {"annotations": annotations}})


async def test_layers_of_another_version_are_not_pulled_again(stage: Stage) -> None:
    empty = (await predicted(stage))["imagePullSeconds"]
    listed = [{"names": [f"{VLLM}@sha256:x", f"{VLLM}:v0.32.0"], "sizeBytes": 8_900_000_000}]
    await tell(stage, {"status": {"images": listed}})
    shared = (await predicted(stage))["imagePullSeconds"]
    assert empty == pytest.approx(77.7, abs=0.1)
    # 6.1 GB less 0.89 GB unpack while later layers arrive, at 120 MB/s.
    assert shared == pytest.approx(0.89e9 / 250e6 + 6.1e9 / 120e6, abs=0.1)


async def test_weights_in_a_nodes_memory_are_read_from_there(stage: Stage) -> None:
    await annotate(stage, {names.WARM_WEIGHTS: WARM})
    assert (await predicted(stage))["weightLoadSeconds"] == pytest.approx(16.06 / 5, abs=0.01)


async def test_without_room_a_node_that_can_come_is_waited_for(stage: Stage) -> None:
    await annotate(stage, {names.PROVISIONING_SECONDS: "95", names.WARM_WEIGHTS: WARM})
    assert (await predicted(stage))["provisioningSeconds"] == 0
    await tell(stage, {"status": {"allocatable": {"nvidia.com/gpu": "0"}}})
    found = await predicted(stage)
    assert found["provisioningSeconds"] == 95
    # A new node has read nothing yet.
    assert found["weightLoadSeconds"] > 10


async def test_while_there_is_no_node_the_spec_says_how_long_one_takes(stage: Stage) -> None:
    await stage.cluster.delete(ports.NODES, None, "dgx-0")
    await stage.apply(coldStart={"provisioningSeconds": 120})
    assert (await predicted(stage))["provisioningSeconds"] == 120


async def test_a_replica_that_waited_for_a_node_is_held_against_a_start_with_one(
    stage: Stage,
) -> None:
    await annotate(stage, {names.PROVISIONING_SECONDS: "95"})
    await tell(stage, {"status": {"allocatable": {"nvidia.com/gpu": "0"}}})
    stage.gateways.say("llama", held=1, arrivals=1)
    await stage.turn()
    await stage.start_pod("llama-1", node="")
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await stage.set_pod_status("llama-1", {"phase": "Pending", "conditions": [refused]})
    await stage.turn()
    # The last node that the pool may have has come: none says any more how long one takes.
    await annotate(stage, {names.PROVISIONING_SECONDS: ""})
    await stage.add_node("dgx-1")
    begun = round(stage.clock.wall_s() * 1000)
    stamp = {"phase": "WarmUp", "start": begun, "end": begun, "plannedMs": 0}
    told = json.dumps({"scale": 1, "stamps": [stamp]})
    meta = {"annotations": {names.PHASES: told}}
    body = {"metadata": meta, "spec": {"nodeName": "dgx-1"}}
    await stage.cluster.patch(ports.PODS, "default", "llama-1", body)
    await stage.set_ready("llama-1")
    await stage.turn()
    finished = next(text for reason, text in stage.events.told if reason == "ColdStartFinished")
    # Pull, load and warm-up of such a model on an empty node take 131.2 s.
    assert finished.endswith("predicted 226.2 s")


@pytest.mark.parametrize(
    "place",
    [
        {"spec": {"taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]}},
        {"metadata": {"labels": {"zone": "b"}}},
    ],
    ids=["taint", "label"],
)
async def test_a_node_that_its_pods_may_not_go_to_is_none_for_it(
    stage: Stage, place: dict[str, Any]
) -> None:
    """Then nothing is counted on there, nor does its pool's growth help."""
    await annotate(stage, {names.PROVISIONING_SECONDS: "95"})
    await tell(stage, {"status": {"allocatable": {"nvidia.com/gpu": "0"}}})
    await tell(stage, {"metadata": {"labels": {"zone": "a"}}})
    await stage.apply(template={"nodeSelector": {"zone": "a"}})
    assert (await predicted(stage))["provisioningSeconds"] == 95
    await tell(stage, place)
    assert (await predicted(stage))["provisioningSeconds"] == 0


async def test_a_taint_that_its_pods_tolerate_keeps_no_node_from_it(stage: Stage) -> None:
    await annotate(stage, {names.PROVISIONING_SECONDS: "95"})
    await tell(stage, {"status": {"allocatable": {"nvidia.com/gpu": "0"}}})
    await tell(stage, {"spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}})
    await stage.apply(template={"tolerations": [{"key": "team", "operator": "Exists"}]})
    assert (await predicted(stage))["provisioningSeconds"] == 95
