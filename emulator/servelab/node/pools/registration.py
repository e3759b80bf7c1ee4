"""Node objects of a GPUPool: labels, capacity, taint, rates, conditions (pure rendering)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from modelserve import errors
from modelserve.api import names, pool, quantities, timestamps
from modelserve.catalog import gpus, storage
from modelserve.ports import Object
from servelab.node.gpus import labels, slices
from servelab.node.rules import amounts

HOST_ARCHITECTURE = "amd64"
LONGEST_LABEL = 63
HUGE_PAGES = ("hugepages-1Gi", "hugepages-2Mi")
# What kubelets declare that they can do, and since when, as far as it is done here.
DECLARED = {
    "ExtendWebSocketsToKubelet": (1, 36),
    "InPlacePodLevelResourcesVerticalScaling": (1, 36),
    "InPlacePodVerticalScalingInitContainers": (1, 36),
    "RestartAllContainersOnContainerExits": (1, 36),
}
# What a kubelet keeps back by its default evictionHard on Linux, memory.available<100Mi and
# nodefs.available<10% (a float32 there: pkg/kubelet/eviction/defaults_linux.go, api/types.go).
MEMORY_RESERVED_BYTES = Decimal(100 * 2**20)
DISK_RESERVED_SHARE = Decimal(13421773) / Decimal(2**27)
# What runc does for a kubelet, as containerd 2.4 tells it.
HANDLER = {"recursiveReadOnlyMounts": True, "userNamespaces": False}
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "sufficient PID available"),
)
# Reasons of a kubelet's events when its node's conditions turn well.
WELL = ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady")


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Where the kubelet API of all emulated nodes listens, and as what nodes tell its address."""

    host: str
    port: int
    address_type: str = "InternalIP"


def node_names(pool_name: str, spec: pool.GPUPoolSpec) -> tuple[str, ...]:
    """The nodes that should stand: ``<pool>-0``, ``<pool>-1``, …"""
    return tuple(f"{pool_name}-{number}" for number in range(spec.node_count))


def check_name(pool_name: str, spec: pool.GPUPoolSpec) -> None:
    """Raises InputError for a pool whose nodes could not carry their names as a label."""
    most = spec.node_count if spec.elastic is None else spec.elastic.max
    last = f"{pool_name}-{max(0, most - 1)}"
    if len(last) > LONGEST_LABEL:
        raise errors.InputError(
            f"metadata.name: nodes such as {last} would have a name of {len(last)} characters, and "
            f"label kubernetes.io/hostname has room for {LONGEST_LABEL}; give a shorter name"
        )


def render_taints(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> list[dict[str, str]]:
    """The taints a node comes with: the pool's, or that of its GPUs."""
    if spec.taints is not None:
        return [taint.model_dump() for taint in spec.taints]
    return [{"key": gpu.resource_name, "value": "present", "effect": "NoSchedule"}]


def render_node(
    owner: Object,
    spec: pool.GPUPoolSpec,
    name: str,
    gpu: gpus.Gpu,
    *,
    devices_at_s: float | None = None,
) -> dict[str, Any]:
    """The Node to create. The taint stands here only: later the node controller has its own.

    With ``devices_at_s``, a Unix time, it has no GPUs and none of their labels until then. The pool
    does not own it: garbage collection would take it with the pool, where a cloud drains it.
    """
    meta = owner["metadata"]
    later = {} if devices_at_s is None else {names.DEVICES_AT: f"{devices_at_s:.3f}"}
    ours = {k: v for k, v in render_notes(name, spec, gpu).items() if v}
    return {
        "metadata": {
            "name": name,
            "labels": render_labels(meta["name"], spec, name, gpu, advertised=devices_at_s is None),
            "annotations": {
                **ours,
                # A kubelet leaves volumes to the controller manager.
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                **later,
                **{k: v for k, v in render_annotations(spec).items() if v},
            },
        },
        "spec": {
            "providerID": f"servelab://{meta['name']}/{name}",
            "taints": render_taints(spec, gpu),
        },
    }


def render_labels(
    pool_name: str,
    spec: pool.GPUPoolSpec,
    name: str,
    gpu: gpus.Gpu,
    *,
    advertised: bool = True,
) -> dict[str, str]:
    """All labels of a node; the pool's own win. ``advertised``: its device plugin is up."""
    product = {names.LABEL_GPU_PRODUCT: gpu.product_label} if gpu.amd else {}
    found = {**product, **labels.of_node(spec, gpu)} if advertised else {}
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": HOST_ARCHITECTURE,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": HOST_ARCHITECTURE,
        "node.kubernetes.io/instance-type": f"{spec.gpus_per_node}x{gpu.key}",
        names.LABEL_VIRTUAL: "true",
        names.LABEL_POOL: pool_name,
        **found,
        **spec.labels,
    }


def render_notes(name: str, spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, str | None]:
    """What whoever plays the node has to know of it, as annotations; None takes one away.

    Labels tell of GPUs what is handed out, and come later. One address serves all nodes, so the
    path to its usage says which it is.
    """
    return {
        names.NODE_GPU: gpu.key,
        names.NODE_GPU_COUNT: str(spec.gpus_per_node),
        names.NODE_MIG_PROFILE: slices.single(spec) or None,
        names.DRAIN_NOTICE: f"{spec.drain.notice_seconds:g}",
        names.RESOURCE_METRICS_PATH: f"/nodes/{name}/metrics/resource",
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
        names.LAYER_BANDWIDTH: pulls.layer_bandwidth,
        names.UNPACK_BANDWIDTH: spec.registry.unpack_bandwidth,
        names.NETWORK_BANDWIDTH: spec.network.bandwidth,
        names.STORAGE_READ_BANDWIDTH: read,
        names.STORAGE_SHARED_BANDWIDTH: shared,
    }


def provisioning_s(spec: pool.GPUPoolSpec, usable: int) -> float:
    """How long another node takes to come; 0 where none would.

    ``usable`` are the nodes with GPUs: one that boots is one that comes, were it the last.
    """
    rules = spec.elastic
    return rules.boot_seconds if rules is not None and usable < rules.max else 0.0


def growth_annotation(spec: pool.GPUPoolSpec, usable: int) -> dict[str, str | None]:
    """What nodes tell of the next one."""
    comes_s = provisioning_s(spec, usable)
    return {names.PROVISIONING_SECONDS: f"{comes_s:g}" if comes_s else None}


def capacity(spec: pool.GPUPoolSpec, gpu: gpus.Gpu, *, advertised: bool = True) -> dict[str, str]:
    """Resources of a node; those of its GPUs only once they are advertised."""
    devices = labels.resources(spec, gpu)
    return {
        "cpu": spec.cpu,
        "memory": spec.memory,
        "pods": str(spec.kubelet.max_pods),
        "ephemeral-storage": spec.disk,
        **dict.fromkeys(HUGE_PAGES, "0"),
        **{name: str(count) for name, count in devices.items() if advertised},
    }


def allocatable(room: Mapping[str, str]) -> dict[str, str]:
    """Of the resources of a node those that pods may ask for."""
    memory, disk = room["memory"], room["ephemeral-storage"]
    memory_bytes, disk_bytes = amounts.parse(memory), amounts.parse(disk)
    disk_left = disk_bytes - int(disk_bytes * DISK_RESERVED_SHARE)
    return {
        **room,
        "memory": amounts.write(max(Decimal(0), memory_bytes - MEMORY_RESERVED_BYTES), memory),
        "ephemeral-storage": amounts.write(disk_left, disk),
    }


def render_status(
    name: str,
    spec: pool.GPUPoolSpec,
    gpu: gpus.Gpu,
    kubelet: Kubelet,
    *,
    advertised: bool = True,
) -> dict[str, Any]:
    """The node's status but for images and conditions, as a strategic merge patch."""
    found = capacity(spec, gpu, advertised=advertised)
    identity = hashlib.sha256(name.encode()).hexdigest()
    return {
        "capacity": found,
        "allocatable": allocatable(found),
        "addresses": [
            {"type": kubelet.address_type, "address": kubelet.host},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        "features": {"supplementalGroupsPolicy": True},
        "declaredFeatures": _declared(spec.kubelet.version),
        # What containerd tells of runc; without a name, of the default.
        "runtimeHandlers": [{"name": each, "features": HANDLER} for each in ("", "runc")],
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


def _declared(version: str) -> list[str]:
    major, minor = version.removeprefix("v").split(".")[:2]
    return [name for name, since in sorted(DECLARED.items()) if (int(major), int(minor)) >= since]


def devices_at_s(node: Object) -> float | None:
    """When a new node has its GPUs, Unix seconds; None for one that has them."""
    text = (node["metadata"].get("annotations") or {}).get(names.DEVICES_AT)
    try:
        return float(text) if text else None
    except ValueError:
        return None


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


def _uuid(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
