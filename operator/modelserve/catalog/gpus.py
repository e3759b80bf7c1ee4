"""GPUs: memory, bandwidth, peaks, links and labels, from ``data/gpus.yaml``.

One entry is what a device plugin hands out as one GPU (one die of an MI250). A slice of a GPU
(MIG) is found by the label of its nodes, ``NVIDIA-H100-80GB-HBM3-MIG-1g.10gb``.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from modelserve.catalog import files, mig

MIB = 1024 * 1024
_MIG = "-MIG-"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU. ``flops_*`` are dense operations per second; rates are one way, per GPU.

    ``compute_share`` and ``bandwidth_share`` are what kernels reach on its architecture, relative
    to what they reach on most. Without ``peer_to_peer`` GPUs talk through the host's memory.
    ``mig_profile`` is a slice's; empty for a whole GPU.
    """

    key: str
    product_label: str
    aliases: tuple[str, ...]
    resource_name: str
    family: str
    compute_capability: str
    memory_bytes: int
    driver_memory_mib: int
    bandwidth_bytes_per_s: float
    flops_16_bit: float
    flops_fp8: float | None
    flops_fp4: float | None
    bf16: bool
    link_kind: str
    link_bytes_per_s: float
    fast_link: bool
    link_span: int | None
    pcie_bytes_per_s: float
    gpus_per_node: int
    compute_share: float = 1.0
    bandwidth_share: float = 1.0
    peer_to_peer: bool = True
    mig_profile: str = ""

    @property
    def title(self) -> str:
        """The name for people: ``NVIDIA H100 80GB HBM3``."""
        return re.sub("[-_]", " ", self.product_label)

    @property
    def amd(self) -> bool:
        """Whether ROCm images are needed."""
        return self.resource_name == "amd.com/gpu"

    @property
    def compute_major_minor(self) -> tuple[int, int] | None:
        """CUDA compute capability; None for AMD."""
        major, dot, minor = self.compute_capability.partition(".")
        return (int(major), int(minor)) if dot else None

    @property
    def driver_memory_bytes(self) -> int:
        """Memory the driver reports, before what it keeps for itself."""
        return self.driver_memory_mib * MIB

    def supports_fp8(self) -> bool:
        """Whether fp8 weights run: fp8 units, by the datasheet."""
        return self.flops_fp8 is not None

    def flops(self, weight_format: str) -> float:
        """Dense peak in operations per second for weights stored as bf16, fp16, fp8, int4, mxfp4.

        Four-bit weights are widened and multiplied at 16 bit; mxfp4 uses fp4 or fp8 units if there.
        """
        if weight_format == "fp8" and self.flops_fp8 is not None:
            return self.flops_fp8
        if weight_format == "mxfp4":
            return self.flops_fp4 or self.flops_fp8 or self.flops_16_bit
        return self.flops_16_bit

    def link(self, tensor_parallel: int) -> tuple[bool, float]:
        """Whether that many GPUs talk over a fast link, and the one-way bytes/s of the path."""
        if self.link_span is not None and tensor_parallel > self.link_span:
            return False, self.pcie_bytes_per_s
        return self.fast_link, self.link_bytes_per_s


def find(name: str) -> Gpu:
    """The GPU known by ``name``: key, product label or alias, in any case. Raises UnknownName.

    ``-SHARED`` (time slicing) at the end of a label is ignored; blanks, ``-`` and ``_`` are alike.
    With ``-MIG-<profile>`` behind it, that slice of it.
    """
    whole, _, profile = _key(name.strip().removesuffix("-SHARED")).partition(_key(_MIG))
    gpu = _index().get(whole)
    if gpu is None:
        words = [word for gpu in all_gpus() for word in (gpu.product_label, gpu.key, *gpu.aliases)]
        raise files.unknown("GPU", name, words)
    return cut(gpu, profile) if profile else gpu


@functools.lru_cache(maxsize=256)
def cut(gpu: Gpu, profile: str) -> Gpu:
    """A slice of the GPU, as a GPU of its own. Raises UnknownName for a profile it has not.

    It has its part of multiprocessors, memory and memory bandwidth, and reaches the host, but no
    other slice.
    """
    known = mig.profiles(gpu).get(profile)
    if known is None:
        raise files.unknown(f"MIG profile of {gpu.product_label}", profile, mig.profiles(gpu))
    compute = mig.compute_share(gpu, known)
    return replace(
        gpu,
        key=f"{gpu.key}{_key(_MIG)}{profile}",
        product_label=f"{gpu.product_label}{_MIG}{profile}",
        aliases=(),
        memory_bytes=round(gpu.memory_bytes * known.memory_share),
        driver_memory_mib=mig.memory_mib(gpu, known),
        bandwidth_bytes_per_s=gpu.bandwidth_bytes_per_s * known.memory_share,
        flops_16_bit=gpu.flops_16_bit * compute,
        flops_fp8=gpu.flops_fp8 and gpu.flops_fp8 * compute,
        flops_fp4=gpu.flops_fp4 and gpu.flops_fp4 * compute,
        link_kind="none between slices",
        link_bytes_per_s=gpu.pcie_bytes_per_s,
        fast_link=False,
        link_span=None,
        peer_to_peer=False,
        mig_profile=profile,
    )


@functools.cache
def all_gpus() -> tuple[Gpu, ...]:
    """Every GPU of the catalogue, in the file's order."""
    return tuple(_from_entry(key, entry) for key, entry in files.load("gpus")["gpus"].items())


def sources(name: str) -> tuple[files.Figure, ...]:
    """Each number of a catalogue entry with its source. Raises UnknownName."""
    key, _, _ = find(name).key.partition(_key(_MIG))
    return files.figures("gpus", files.load("gpus")["gpus"][key])


def _key(word: str) -> str:
    return re.sub(r"[-_\s]+", "-", word.strip().lower())


@functools.cache
def _index() -> Mapping[str, Gpu]:
    index: dict[str, Gpu] = {}
    for gpu in all_gpus():
        for word in (gpu.key, gpu.product_label, *gpu.aliases):
            index.setdefault(_key(word), gpu)
    return index


def _from_entry(key: str, entry: Mapping[str, Any]) -> Gpu:
    tflops, link = entry["dense_tflops"], entry["peer_link"]
    reached = files.load("gpus")["architectures"].get(entry["family"], {})

    def peak(*formats: str) -> float | None:
        found = (tflops[name]["value"] * 1e12 for name in formats if name in tflops)
        return next(found, None)

    flops_16_bit = peak("bf16", "fp16")
    assert flops_16_bit is not None, f"{key}: no 16-bit peak"
    return Gpu(
        key=key,
        product_label=entry["product_label"]["value"],
        aliases=tuple(entry["aliases"]),
        resource_name=entry["resource_name"],
        family=entry["family"],
        compute_capability=entry["compute_capability"]["value"],
        memory_bytes=round(entry["memory_gb"]["value"] * 1e9),
        driver_memory_mib=entry["driver_memory_mib"]["value"],
        bandwidth_bytes_per_s=entry["memory_bandwidth_gb_s"]["value"] * 1e9,
        flops_16_bit=flops_16_bit,
        flops_fp8=peak("fp8"),
        flops_fp4=peak("fp4"),
        bf16="bf16" in tflops,
        link_kind=link["kind"],
        link_bytes_per_s=link["gb_s_one_way"] * 1e9,
        fast_link=link["fast"],
        link_span=link.get("span"),
        pcie_bytes_per_s=entry["host_pcie_gb_s_one_way"]["value"] * 1e9,
        gpus_per_node=entry["gpus_per_node"]["value"],
        compute_share=reached.get("compute", 1.0),
        bandwidth_share=reached.get("bandwidth", 1.0),
        peer_to_peer=link.get("peer_to_peer", True),
    )
