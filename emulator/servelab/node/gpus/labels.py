"""What GPU feature discovery, the GPU operator and AMD's node labeller write on a node (pure).

After NVIDIA's k8s-device-plugin (internal/lm) for driver 570, and ROCm's k8s-device-plugin.
"""

from collections.abc import Mapping

from modelserve.api import pool
from modelserve.catalog import gpus, mig
from servelab.node.gpus import slices

DRIVER = ("570", "172", "08")
CUDA = ("12", "8")
TIMESTAMP = "nvidia.com/gfd.timestamp"
GPU = "nvidia.com/gpu"
# The GPU operator's parts on the node.
_DEPLOYED = (
    "container-toolkit",
    "dcgm",
    "dcgm-exporter",
    "device-plugin",
    "driver",
    "gpu-feature-discovery",
    "node-status-exporter",
    "operator-validator",
)
# What AMD's cards say: device id, compute units, SIMDs (ids and forms from its labeller).
_AMD = {"mi250": ("740c", 104, 416), "mi300x": ("74a1", 304, 1216)}
_AMD_DRIVER = "6.12.12"


def of_node(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, str]:
    """The labels of a node that advertises its GPUs. Raises InputError for MIG that cannot be."""
    return _amd(spec, gpu) if gpu.amd else _nvidia(spec, gpu)


def resources(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, int]:
    """Extended resources and how many of each a node has, as the device plugin counts them."""
    if spec.devices == "DRA":
        return {}
    shares = spec.time_slicing.replicas if spec.time_slicing else 1
    cut = slices.of_pool(spec, gpu)
    if not cut:
        return {gpu.resource_name: spec.gpus_per_node * shares}
    counts = {slices.resource(spec, gpu, p): spec.gpus_per_node * count for p, count in cut.items()}
    # With the strategy mixed, no GPU is left whole.
    whole = {} if GPU in counts else {GPU: 0}
    return {**whole, **{name: count * shares for name, count in counts.items()}}


def product(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> str:
    """The product as a pod's selector has to name it."""
    return of_node(spec, gpu).get("nvidia.com/gpu.product", gpu.product_label)


def _nvidia(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, str]:
    major, minor = gpu.compute_major_minor or (0, 0)
    shares = spec.time_slicing.replicas if spec.time_slicing else 1
    cut = slices.of_pool(spec, gpu)
    found = {
        "gpu.present": "true",
        "gpu.count": str(spec.gpus_per_node),
        "gpu.memory": str(gpu.driver_memory_mib),
        "gpu.product": gpu.product_label + ("-SHARED" if shares > 1 and not cut else ""),
        "gpu.family": gpu.family,
        "gpu.compute.major": str(major),
        "gpu.compute.minor": str(minor),
        # A GPU that is cut is not shared itself.
        "gpu.replicas": "0" if cut else str(shares),
        "gpu.sharing-strategy": "time-slicing" if shares > 1 else "none",
        "gpu.machine": "servelab",
        "gpu.mode": "compute",
        "mps.capable": "false",
        "vgpu.present": "false",
        "mig.capable": str(mig.capable(gpu)).lower(),
        **_versions(),
        **{f"gpu.deploy.{part}": "true" for part in _DEPLOYED},
        **_mig(spec, gpu),
    }
    labels = {f"nvidia.com/{key}": value for key, value in found.items()}
    for profile, count in cut.items():
        labels |= _slice(spec, gpu, profile, count)
    return labels | {"feature.node.kubernetes.io/pci-10de.present": "true"}


def _mig(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> Mapping[str, str]:
    if not mig.capable(gpu):
        return {}
    state = {"mig.config.state": "success", "gpu.deploy.mig-manager": "true"}
    if spec.mig is None:
        return {"mig.strategy": "single", "mig.config": "all-disabled", **state}
    profiles = spec.mig.profiles
    config = f"all-{next(iter(profiles))}" if len(profiles) == 1 else "custom-config"
    return {"mig.strategy": spec.mig.strategy, "mig.config": config, **state}


def _slice(
    spec: pool.GPUPoolSpec, gpu: gpus.Gpu, profile: mig.Profile, count: int
) -> dict[str, str]:
    """With the strategy single, slices take over the labels of GPUs."""
    shares = spec.time_slicing.replicas if spec.time_slicing else 1
    name = gpus.cut(gpu, profile.name).product_label + ("-SHARED" if shares > 1 else "")
    found = {
        "product": name,
        "count": spec.gpus_per_node * count,
        "replicas": shares,
        **slices.attributes(profile, gpu),
    }
    resource = slices.resource(spec, gpu, profile)
    return {f"{resource}.{key}": str(value) for key, value in found.items()}


def _versions() -> Mapping[str, str]:
    return {
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


def _amd(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> dict[str, str]:
    found = {
        "product-name": gpu.product_label,
        "vram": f"{round(gpu.driver_memory_mib / 1024)}G",
        "family": "AI",
        "driver-version": _AMD_DRIVER,
    }
    if gpu.key in _AMD:
        device, units, simds = _AMD[gpu.key]
        found |= {"device-id": device, "cu-count": str(units), "simd-count": str(simds)}
    partitioned = str(gpu.family == "cdna3").lower()
    found |= {
        "compute-partitioning-supported": partitioned,
        "memory-partitioning-supported": partitioned,
    }
    if gpu.family == "cdna3":
        found["compute-memory-partition"] = "spx_nps1"
    count = str(spec.gpus_per_node)
    labels = {f"amd.com/gpu.{key}": value for key, value in found.items()}
    for key in ("device-id", "family", "product-name", "vram", "cu-count", "simd-count"):
        if key in found:
            # What its labeller wrote before, and still writes.
            labels[f"beta.amd.com/gpu.{key}"] = found[key]
            labels[f"beta.amd.com/gpu.{key}.{found[key]}"] = count
    return labels | {"feature.node.kubernetes.io/pci-1002.present": "true"}
