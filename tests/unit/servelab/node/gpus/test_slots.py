"""What a device plugin hands out, and what pods keep."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.api.pool import GPUPoolSpec
from modelserve.catalog import gpus
from servelab.node.gpus import claims, devices, slots

GPU = gpus.find("h100-sxm")


def spec(**fields: Any) -> GPUPoolSpec:
    return GPUPoolSpec.model_validate({"gpu": "h100-sxm", "gpusPerNode": 2, **fields})


def pod(
    uid: str, count: int = 1, resource: str = "nvidia.com/gpu", told: str = ""
) -> dict[str, Any]:
    meta = {"uid": uid, "annotations": {"emulator.modelserve.dev/gpus": told}}
    container = {"resources": {"limits": {resource: str(count)}}}
    return {"metadata": meta, "spec": {"containers": [container]}}


def test_a_pod_gets_the_first_free_gpus_and_gives_them_back() -> None:
    there = slots.of_node("n", spec(), GPU)
    first, second = (device.uuid for device in devices.of_node("n", 2))
    given = slots.Given()
    assert given.take(pod("a"), there) == (first,)
    assert given.take(pod("b"), there) == (second,)
    assert given.take(pod("c"), there) == ()
    given.keep(["b"])
    assert given.take(pod("d"), there) == (first,)


def test_a_pod_keeps_what_its_annotation_tells_after_a_restart() -> None:
    there = slots.of_node("n", spec(), GPU)
    second = devices.of_node("n", 2)[1].uuid
    assert slots.Given().take(pod("a", told=second), there) == (second,)
    assert slots.Given().take(pod("a", told="GPU-another-nodes"), there) != ("GPU-another-nodes",)


def test_shared_gpus_are_handed_out_to_the_fewest_pods_first() -> None:
    there = slots.of_node("n", spec(timeSlicing={"replicas": 2}), GPU)
    given = slots.Given()
    found = [given.take(pod(str(number)), there)[0] for number in range(4)]
    assert found[0] != found[1]
    assert sorted(found) == sorted([*there["nvidia.com/gpu"][:2]] * 2)


def test_each_share_of_a_pod_is_of_the_gpu_that_then_has_the_most_left() -> None:
    there = slots.of_node("n", spec(timeSlicing={"replicas": 4}), GPU)
    given = slots.Given()
    (first,) = given.take(pod("a"), there)
    found = given.take(pod("b", count=3), there)
    assert sorted(found.count(each) for each in set(found)) == [1, 2]
    assert found.count(first) == 1


def test_slices_have_ids_of_their_own_under_their_own_resource() -> None:
    cut = {"strategy": "mixed", "profiles": {"3g.40gb": 2}}
    there = slots.of_node("n", spec(mig=cut), GPU)
    assert len(set(there["nvidia.com/mig-3g.40gb"])) == 4
    (one,) = slots.Given().take(pod("a", resource="nvidia.com/mig-3g.40gb"), there)
    assert one.startswith("MIG-")
    (found,) = slots.slices_of([one], "n", 2, GPU)
    gpu = devices.of_node("n", 2)[0].uuid
    assert (found.profile, found.gpu_uuid, found.uuid) == ("3g.40gb", gpu, one)


def test_a_node_publishes_its_gpus_as_nvidias_driver_does() -> None:
    node = {"metadata": {"name": "n", "uid": "u"}}
    found = claims.render_slice(node, spec(devices="DRA"), GPU)["spec"]
    assert found["pool"] == {"name": "n", "generation": 1, "resourceSliceCount": 1}
    first = found["devices"][0]
    assert first["name"] == "gpu-0"
    assert first["attributes"]["productName"] == {"string": "NVIDIA H100 80GB HBM3"}
    assert first["attributes"]["cudaComputeCapability"] == {"version": "9.0.0"}
    assert first["capacity"]["memory"] == {"value": "81559Mi"}


def test_what_the_scheduler_allocated_to_a_claim_is_the_pods() -> None:
    result = {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-1"}
    claim = {"status": {"allocation": {"devices": {"results": [result]}}}}
    assert claims.given([claim, {}], "n", 2) == [devices.of_node("n", 2)[1].uuid]


def test_claims_of_a_pod_are_named_by_the_controller_or_by_the_pod() -> None:
    made = [{"name": "a", "resourceClaimName": "p-a-x7"}]
    wanted = [
        {"name": "a", "resourceClaimTemplateName": "t"},
        {"name": "b", "resourceClaimName": "c"},
    ]
    found = claims.claim_names(
        {"spec": {"resourceClaims": wanted}, "status": {"resourceClaimStatuses": made}}
    )
    assert found == {"a": "p-a-x7", "b": "c"}


@pytest.mark.parametrize("fields", [{"timeSlicing": {"replicas": 2}}, {"gpu": "mi300x"}])
def test_gpus_that_cannot_be_claimed_are_refused(fields: dict[str, Any]) -> None:
    wanted = spec(devices="DRA", **fields)
    with pytest.raises(errors.InputError, match="devices"):
        claims.check(wanted, gpus.find(wanted.gpu))
