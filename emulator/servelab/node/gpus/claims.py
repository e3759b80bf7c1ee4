"""GPUs by dynamic resource allocation: NVIDIA's slices, its class, what a claim was given (pure).

Attributes as its driver publishes them (gpu.nvidia.com, resource.k8s.io/v1).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from modelserve import errors
from modelserve.api import pool
from modelserve.catalog import gpus
from modelserve.ports import Object
from servelab.node.gpus import devices, labels

DRIVER = "gpu.nvidia.com"
# The driver's own: two-part versions are padded.
_DRIVER_VERSION = f"{labels.DRIVER[0]}.{labels.DRIVER[1]}.{int(labels.DRIVER[2])}"
_CUDA_VERSION = f"{labels.CUDA[0]}.{labels.CUDA[1]}.0"


def check(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> None:
    """Raises InputError for a pool whose GPUs cannot be claimed."""
    if spec.devices != "DRA":
        return
    if gpu.amd:
        raise errors.InputError(
            f"spec.devices: DRA is for NVIDIA's GPUs, and {gpu.product_label} is AMD's; "
            "use DevicePlugin"
        )
    if spec.mig is not None or spec.time_slicing is not None:
        raise errors.InputError(
            "spec.devices: with DRA only whole GPUs can be claimed; leave mig and timeSlicing out"
        )


def render_class() -> dict[str, Any]:
    """The DeviceClass ``gpu.nvidia.com``."""
    chosen = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    return {"metadata": {"name": DRIVER}, "spec": {"selectors": [{"cel": {"expression": chosen}}]}}


def render_slice(node: Object, spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, Any]:
    """The ResourceSlice with the GPUs of a node, which owns it."""
    meta = node["metadata"]
    name = meta["name"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": meta["uid"]}
    return {
        "metadata": {
            "name": f"{name}-{DRIVER}",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                _device(device, gpu) for device in devices.of_node(name, spec.gpus_per_node)
            ],
        },
    }


def claim_names(pod: Object) -> Mapping[str, str]:
    """The pod's claims: the ResourceClaim's name by the pod's own name for it.

    One made from a template is missing as long as the controller has not told its name.
    """
    made = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    named = (
        (entry["name"], entry.get("resourceClaimName") or made.get(entry["name"]))
        for entry in pod["spec"].get("resourceClaims") or ()
    )
    return {name: claim for name, claim in named if claim}


def not_allowed(claim: Object, pod: Object, *, made: bool) -> str:
    """What a kubelet says of a claim that is not the pod's to use; empty if it is.

    ``made``: from a template, so that the pod has to own it.
    """
    theirs, own = claim["metadata"], pod["metadata"]
    owners = theirs.get("ownerReferences") or ()
    if made and not any(each["uid"] == own["uid"] and each.get("controller") for each in owners):
        return (
            f"ResourceClaim {theirs['namespace']}/{theirs['name']} was not created for Pod "
            f"{own['namespace']}/{own['name']} (Pod is not owner)"
        )
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    if not any(each.get("uid") == own["uid"] for each in reserved):
        return (
            f"pod {own['name']} ({own['uid']}) is not allowed to use ResourceClaim "
            f"{theirs['name']} ({theirs['uid']})"
        )
    return ""


def given(claims: Iterable[Object], node: str, count: int) -> Sequence[str]:
    """UUIDs of the GPUs on the node that were allocated to these claims."""
    uuids = {f"gpu-{device.index}": device.uuid for device in devices.of_node(node, count)}
    results = (
        result
        for claim in claims
        for result in (
            ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
        ).get("results")
        or ()
    )
    return [
        uuids[result["device"]]
        for result in results
        if result.get("driver") == DRIVER
        and result.get("pool") == node
        and result.get("device") in uuids
    ]


def _device(device: devices.Device, gpu: gpus.Gpu) -> dict[str, Any]:
    major, minor = gpu.compute_major_minor or (0, 0)
    texts = {
        "type": "gpu",
        "uuid": device.uuid,
        "productName": gpu.title,
        "brand": "Nvidia",
        "architecture": gpu.family.title().replace("-", " "),
        "pcieBusID": device.bus_id[4:].lower(),
        "addressingMode": "HMM",
    }
    versions = {
        "cudaComputeCapability": f"{major}.{minor}.0",
        "driverVersion": _DRIVER_VERSION,
        "cudaDriverVersion": _CUDA_VERSION,
    }
    return {
        "name": f"gpu-{device.index}",
        "attributes": {
            **{key: {"string": value} for key, value in texts.items()},
            **{key: {"version": value} for key, value in versions.items()},
        },
        "capacity": {"memory": {"value": f"{gpu.driver_memory_mib}Mi"}},
    }
