"""Node objects of a GPUPool: labels, capacity, taint, rates, conditions (pure rendering).

Labels as NVIDIA's GPU feature discovery and AMD's node labeller write them, for driver 570.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from modelserve.api import names, pool, quantities, timestamps
from modelserve.catalog import gpus, storage
from modelserve.ports import Object

HOST_ARCHITECTURE = "amd64"
DRIVER = ("570", "172", "08")
CUDA = ("12", "8")
EPHEMERAL_STORAGE = "3686Gi"
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "sufficient PID available"),
)


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Where the kubelet API of all emulated nodes listens."""

    host: str
    port: int


def node_names(pool_name: str, spec: pool.GPUPoolSpec) -> tuple[str, ...]:
    """The nodes that should stand: ``<pool>-0``, ``<pool>-1``, …"""
    return tuple(f"{pool_name}-{number}" for number in range(spec.node_count))


def render_node(owner: Object, spec: pool.GPUPoolSpec, name: str, gpu: gpus.Gpu) -> dict[str, Any]:
    """The Node to create. The taint stands here only: later the node controller has its own."""
    meta = owner["metadata"]
    taints = [{"key": gpu.resource_name, "value": "present", "effect": "NoSchedule"}]
    if spec.taints is not None:
        taints = [taint.model_dump() for taint in spec.taints]
    reference = {
        "apiVersion": names.EMULATOR_API_VERSION,
        "kind": names.POOL_KIND,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {
        "metadata": {
            "name": name,
            "labels": render_labels(meta["name"], spec, name, gpu),
            "annotations": {k: v for k, v in render_annotations(spec).items() if v},
            "ownerReferences": [reference],
        },
        "spec": {"providerID": f"servelab://{meta['name']}/{name}", "taints": taints},
    }


def render_labels(
    pool_name: str, spec: pool.GPUPoolSpec, name: str, gpu: gpus.Gpu
) -> dict[str, str]:
    """All labels of a node; the pool's own win."""
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": HOST_ARCHITECTURE,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": HOST_ARCHITECTURE,
        "node.kubernetes.io/instance-type": f"{spec.gpus_per_node}x{gpu.key}",
        names.LABEL_VIRTUAL: "true",
        names.LABEL_POOL: pool_name,
        names.LABEL_GPU_PRODUCT: gpu.product_label,
        **(_amd_labels(gpu) if gpu.amd else _nvidia_labels(spec, gpu)),
        **spec.labels,
    }


def render_annotations(spec: pool.GPUPoolSpec) -> dict[str, str | None]:
    """The rates that limit a cold start there; None takes one away.

    Where the pool gives neither rate nor a class of its own, what the model's storage class says
    holds, as on a node without annotations.
    """
    reads = spec.storage
    read, shared = reads.read_bandwidth, reads.shared_bandwidth
    if reads.class_ and reads.class_ != storage.DEFAULT:
        kind = storage.find(reads.class_)
        read = read or quantities.format_rate(kind.read_bytes_per_s)
        if shared is None and kind.shared_bytes_per_s is not None:
            shared = quantities.format_rate(kind.shared_bytes_per_s)
    pulls = spec.registry
    down = [rate for rate in (pulls.bandwidth, pulls.shared_bandwidth) if rate is not None]
    return {
        names.REGISTRY_BANDWIDTH: min(down, key=quantities.parse_rate),
        names.REGISTRY_SHARED_BANDWIDTH: pulls.shared_bandwidth,
        names.UNPACK_BANDWIDTH: spec.registry.unpack_bandwidth,
        names.NETWORK_BANDWIDTH: spec.network.bandwidth,
        names.STORAGE_READ_BANDWIDTH: read,
        names.STORAGE_SHARED_BANDWIDTH: shared,
    }


def render_status(
    name: str, spec: pool.GPUPoolSpec, gpu: gpus.Gpu, kubelet: Kubelet
) -> dict[str, Any]:
    """The node's status but for images and conditions, as a strategic merge patch."""
    capacity = {
        "cpu": spec.cpu,
        "memory": spec.memory,
        "pods": str(spec.kubelet.max_pods),
        "ephemeral-storage": EPHEMERAL_STORAGE,
        gpu.resource_name: str(spec.gpus_per_node),
    }
    identity = hashlib.sha256(name.encode()).hexdigest()
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [
            {"type": "InternalIP", "address": kubelet.host},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        "nodeInfo": {
            "machineID": identity[:32],
            "systemUUID": _uuid(identity[:32]),
            "bootID": _uuid(identity[32:]),
            "kernelVersion": "6.8.0-servelab",
            "osImage": "Emulated GPU node",
            "containerRuntimeVersion": "containerd://2.4.2",
            "kubeletVersion": spec.kubelet.version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": HOST_ARCHITECTURE,
        },
    }


def render_conditions(found: Object, now_real_s: float) -> list[dict[str, Any]]:
    """All conditions of a healthy node; ``found`` is the Node as it stands."""
    known = {entry["type"]: entry for entry in (found.get("status") or {}).get("conditions") or ()}
    now = timestamps.format_time(now_real_s)
    ready = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    rows = [*((k, s, r, f"kubelet has {m}") for k, s, r, m in _HEALTHY), ready]
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": known[kind]["lastTransitionTime"]
            if known.get(kind, {}).get("status") == status
            else now,
        }
        for kind, status, reason, message in rows
    ]


def _nvidia_labels(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, str]:
    major, minor = gpu.compute_major_minor or (0, 0)
    mig = (major, minor) == (8, 0) or major in (9, 10)
    labels = {
        "gpu.present": "true",
        "gpu.count": str(spec.gpus_per_node),
        "gpu.memory": str(gpu.driver_memory_mib),
        "gpu.family": gpu.family,
        "gpu.compute.major": str(major),
        "gpu.compute.minor": str(minor),
        "gpu.replicas": "1",
        "gpu.sharing-strategy": "none",
        "gpu.machine": "servelab",
        "gpu.mode": "compute",
        "mig.capable": str(mig).lower(),
        "mps.capable": "false",
        "vgpu.present": "false",
        "cuda.driver-version.major": DRIVER[0],
        "cuda.driver-version.minor": DRIVER[1],
        "cuda.driver-version.revision": DRIVER[2],
        "cuda.driver-version.full": ".".join(DRIVER),
        "cuda.driver.major": DRIVER[0],
        "cuda.driver.minor": DRIVER[1],
        "cuda.driver.rev": DRIVER[2],
        "cuda.runtime-version.major": CUDA[0],
        "cuda.runtime-version.minor": CUDA[1],
        "cuda.runtime-version.full": ".".join(CUDA),
        "cuda.runtime.major": CUDA[0],
        "cuda.runtime.minor": CUDA[1],
    }
    prefixed = {f"nvidia.com/{key}": value for key, value in labels.items()}
    return prefixed | {"feature.node.kubernetes.io/pci-10de.present": "true"}


def _amd_labels(gpu: gpus.Gpu) -> dict[str, str]:
    return {
        "amd.com/gpu.product-name": gpu.product_label,
        "amd.com/gpu.vram": f"{round(gpu.driver_memory_mib / 1024)}G",
        "amd.com/gpu.family": "AI",
        "feature.node.kubernetes.io/pci-1002.present": "true",
    }


def _uuid(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
