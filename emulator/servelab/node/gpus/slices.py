"""Multi-instance GPUs: the profiles a GPU can be cut into, and what a slice has (pure).

Profiles are named as the driver names them: compute slices of seven, memory slices of eight
(``1g.10gb``). Shares and engines are our own knowledge of the driver's profile tables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import pool
from modelserve.catalog import gpus

COMPUTE_SLICES = 7
MEMORY_SLICES = 8
# (compute, memory) slices of a profile.
_SHAPES = ((1, 1), (1, 2), (2, 2), (3, 4), (4, 4), (7, 8))
# What of its memory a slice leaves its container, by memory slices.
_USABLE = {1: 0.95, 2: 0.975, 4: 0.981, 8: 0.9875}
# Multiprocessors by compute slices.
_PROCESSORS = {
    "ampere": {1: 14, 2: 28, 3: 42, 4: 56, 7: 98},
    "hopper": {1: 16, 2: 32, 3: 60, 4: 64, 7: 132},
    "blackwell": {1: 18, 2: 36, 3: 70, 4: 72, 7: 148},
}
_NAME = re.compile(r"(?P<compute>[1-7])g\.(?P<gb>[0-9]+)gb")


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of slice: its name, and slices of compute (of 7) and memory (of 8)."""

    name: str
    compute: int
    memory: int


def profiles(gpu: gpus.Gpu) -> Mapping[str, Profile]:
    """What the GPU can be cut into, by name; empty if it cannot."""
    if not capable(gpu):
        return {}
    # The name has the GPU's memory as sold, rounded half up.
    names = (
        Profile(f"{compute}g.{int(gpu.memory_bytes / 1e9 * memory / MEMORY_SLICES + 0.5)}gb", *rest)
        for compute, memory in _SHAPES
        for rest in ((compute, memory),)
    )
    return {profile.name: profile for profile in names}


def capable(gpu: gpus.Gpu) -> bool:
    """Whether the GPU can be cut: A100, Hopper, data-centre Blackwell."""
    major, minor = gpu.compute_major_minor or (0, 0)
    return (major, minor) == (8, 0) or major in (9, 10)


def of_pool(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> Mapping[Profile, int]:
    """Slices of each GPU by profile; empty without MIG. Raises InputError with the mend."""
    if spec.mig is None:
        return {}
    known = profiles(gpu)
    if not known:
        raise errors.InputError(f"spec.mig: {gpu.product_label} cannot be cut; leave mig out")
    wanted = spec.mig.profiles
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise errors.InputError(
            f"spec.mig.profiles: {gpu.product_label} has no profile {unknown!r}; "
            f"it has {', '.join(known)}"
        )
    if spec.mig.strategy == "single" and len(wanted) > 1:
        raise errors.InputError(
            "spec.mig: strategy single means one profile for all slices; give one, or mixed"
        )
    found = {known[name]: count for name, count in wanted.items()}
    compute = sum(profile.compute * count for profile, count in found.items())
    memory = sum(profile.memory * count for profile, count in found.items())
    if compute > COMPUTE_SLICES or memory > MEMORY_SLICES:
        raise errors.InputError(
            f"spec.mig.profiles: {compute} of {COMPUTE_SLICES} compute and {memory} of "
            f"{MEMORY_SLICES} memory slices do not fit one GPU; ask for fewer"
        )
    return found


def attributes(profile: Profile, gpu: gpus.Gpu) -> Mapping[str, int]:
    """What GPU feature discovery tells of a slice, by the end of its label."""
    whole = profile.compute == COMPUTE_SLICES
    newer = gpu.family != "ampere"
    share = profile.memory / MEMORY_SLICES
    decoders = profile.compute if newer else {1: 0, 2: 1, 3: 2, 4: 2, 7: 5}[profile.compute]
    return {
        "memory": int(gpu.driver_memory_mib * share * _USABLE[profile.memory]),
        "multiprocessors": _PROCESSORS[gpu.family][profile.compute],
        "slices.gi": profile.compute,
        "slices.ci": profile.compute,
        "engines.copy": profile.memory if whole and newer else profile.compute,
        "engines.decoder": decoders,
        "engines.encoder": 0,
        "engines.jpeg": profile.compute if newer else int(whole),
        "engines.ofa": int(whole),
    }
