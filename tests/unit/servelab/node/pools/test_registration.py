"""Node objects of a pool."""

from typing import Any

import pytest

from modelserve.api.pool import GPUPoolSpec
from modelserve.catalog import gpus
from servelab.node.pools import registration

OWNER = {"metadata": {"name": "dgx", "uid": "u-1"}}
KUBELET = registration.Kubelet("127.0.0.1", 10250)


def spec(**fields: Any) -> GPUPoolSpec:
    return GPUPoolSpec.model_validate({"gpu": "NVIDIA-H100-80GB-HBM3", **fields})


def node(pool: GPUPoolSpec) -> dict[str, Any]:
    return registration.render_node(OWNER, pool, "dgx-0", gpus.find(pool.gpu))


def test_a_fixed_pool_names_its_nodes_by_number() -> None:
    assert registration.node_names("dgx", spec(nodes=2)) == ("dgx-0", "dgx-1")


def test_an_elastic_pool_stands_at_its_minimum() -> None:
    assert registration.node_names("dgx", spec(nodes={"min": 1, "max": 4})) == ("dgx-0",)


def test_labels_are_gpu_feature_discoverys() -> None:
    labels = node(spec())["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.memory"] == "81559"
    assert labels["nvidia.com/gpu.family"] == "hopper"
    assert labels["nvidia.com/mig.capable"] == "true"


@pytest.mark.parametrize(("gpu", "capable"), [("l4", "false"), ("a100-sxm-80g", "true")])
def test_mig_depends_on_the_gpu(gpu: str, capable: str) -> None:
    labels = node(spec(gpu=gpu))["metadata"]["labels"]
    assert labels["nvidia.com/mig.capable"] == capable


def test_amd_nodes_carry_amds_labels_and_resource() -> None:
    pool = spec(gpu="mi300x")
    labels = node(pool)["metadata"]["labels"]
    status = registration.render_status("dgx-0", pool, gpus.find("mi300x"), KUBELET)
    assert labels["amd.com/gpu.vram"] == "192G"
    assert not any(key.startswith("nvidia.com/gpu.c") for key in labels)
    assert status["capacity"]["amd.com/gpu"] == "8"


def test_labels_of_the_pool_win() -> None:
    assert (
        node(spec(labels={"kubernetes.io/os": "x"}))["metadata"]["labels"]["kubernetes.io/os"]
        == "x"
    )


def test_a_node_has_no_owner_that_it_would_go_with() -> None:
    assert "ownerReferences" not in node(spec())["metadata"]


def test_the_taint_names_the_gpu_resource_unless_the_pool_has_its_own() -> None:
    gpu_taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert node(spec())["spec"]["taints"] == [gpu_taint]
    assert node(spec(taints=[]))["spec"]["taints"] == []


def test_rates_are_annotated_as_the_pool_gives_them() -> None:
    pool = spec(storage={"readBandwidth": "3GB/s"}, registry={"bandwidth": "1GB/s"})
    annotations = node(pool)["metadata"]["annotations"]
    assert annotations["modelserve.dev/storage-read-bandwidth"] == "3GB/s"
    assert annotations["modelserve.dev/registry-bandwidth"] == "1GB/s"


def test_one_node_pulls_no_faster_than_the_registry_serves_all() -> None:
    pool = spec(registry={"bandwidth": "1GB/s", "sharedBandwidth": "400MB/s"})
    annotations = node(pool)["metadata"]["annotations"]
    assert annotations["modelserve.dev/registry-bandwidth"] == "400MB/s"
    assert annotations["modelserve.dev/registry-shared-bandwidth"] == "400MB/s"


def test_without_a_rate_the_models_storage_class_is_to_say() -> None:
    assert "modelserve.dev/storage-read-bandwidth" not in node(spec())["metadata"]["annotations"]


def test_conditions_are_in_a_kubelets_order_and_keep_their_transition() -> None:
    old = registration.render_conditions({}, 1_800_000_000)
    new = registration.render_conditions({"status": {"conditions": old}}, 1_800_000_300)
    assert [c["type"] for c in new] == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert new[3]["lastTransitionTime"] == old[3]["lastTransitionTime"]
    assert new[3]["lastHeartbeatTime"] != old[3]["lastHeartbeatTime"]


def test_a_node_that_was_thought_dead_is_ready_from_now() -> None:
    lost = [{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2027-01-01T00:00:00Z"}]
    ready = registration.render_conditions({"status": {"conditions": lost}}, 1_800_000_000)[3]
    assert ready["lastTransitionTime"] == "2027-01-15T08:00:00Z"


def test_shared_gpus_count_several_times_and_are_called_so() -> None:
    pool = spec(timeSlicing={"replicas": 4})
    labels = node(pool)["metadata"]["labels"]
    status = registration.render_status("dgx-0", pool, gpus.find(pool.gpu), KUBELET)
    assert status["capacity"]["nvidia.com/gpu"] == "32"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-SHARED"
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.replicas"]) == ("8", "4")
    assert labels["nvidia.com/gpu.sharing-strategy"] == "time-slicing"


def test_slices_of_one_profile_take_the_place_of_gpus() -> None:
    pool = spec(mig={"profiles": {"1g.10gb": 7}})
    labels = node(pool)["metadata"]["labels"]
    status = registration.render_status("dgx-0", pool, gpus.find(pool.gpu), KUBELET)
    assert status["capacity"]["nvidia.com/gpu"] == "56"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.slices.gi"]) == ("56", "1")
    assert (labels["nvidia.com/mig.strategy"], labels["nvidia.com/gpu.replicas"]) == ("single", "1")


def test_slices_of_several_profiles_are_resources_of_their_own() -> None:
    pool = spec(mig={"strategy": "mixed", "profiles": {"3g.40gb": 1, "1g.10gb": 3}})
    labels = node(pool)["metadata"]["labels"]
    capacity = registration.capacity(pool, gpus.find(pool.gpu))
    assert (capacity["nvidia.com/gpu"], capacity["nvidia.com/mig-1g.10gb"]) == ("0", "24")
    assert labels["nvidia.com/mig-3g.40gb.product"] == "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.replicas"] == "0"


def test_a_kubelet_keeps_memory_and_disk_back_to_the_byte() -> None:
    # As kubeadm's nodes of 40 GiB of disk show in public bug reports.
    told = spec(memory="16266172Ki", disk="41152812Ki")
    status = registration.render_status("dgx-0", told, gpus.find(told.gpu), KUBELET)
    room, free = status["capacity"], status["allocatable"]
    assert (room["memory"], room["ephemeral-storage"]) == ("16266172Ki", "41152812Ki")
    assert (free["memory"], free["ephemeral-storage"]) == ("16163772Ki", "37926431477")
    assert {key for key in room if room[key] != free[key]} == {"memory", "ephemeral-storage"}


def test_claimed_gpus_are_no_extended_resource() -> None:
    assert "nvidia.com/gpu" not in registration.capacity(spec(devices="DRA"), gpus.find("h100-sxm"))


def test_amds_labeller_tells_of_the_card_in_both_its_ways() -> None:
    labels = node(spec(gpu="mi300x"))["metadata"]["labels"]
    assert labels["amd.com/gpu.product-name"] == "AMD_Instinct_MI300X_OAM"
    assert labels["amd.com/gpu.device-id"] == "74a1"
    assert labels["beta.amd.com/gpu.cu-count.304"] == "8"


@pytest.mark.parametrize(
    ("version", "declared"), [("v1.37.2", True), ("v1.36.0", True), ("v1.35.9", False)]
)
def test_kubelets_declare_what_they_can_do_from_the_version_on_that_can(
    version: str, declared: bool
) -> None:
    pool = spec(kubelet={"version": version})
    status = registration.render_status("dgx-0", pool, gpus.find("h100"), KUBELET)
    found = [
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    ]
    assert status["declaredFeatures"] == (found if declared else [])


@pytest.mark.parametrize("kind", ["InternalIP", "ExternalIP"])
def test_nodes_tell_their_kubelets_address_as_the_emulator_was_told_to(kind: str) -> None:
    kubelet = registration.Kubelet("10.1.2.3", 10250, kind)
    status = registration.render_status("dgx-0", spec(), gpus.find(spec().gpu), kubelet)
    assert status["addresses"][0] == {"type": kind, "address": "10.1.2.3"}
