"""Multi-instance GPUs: the profiles a GPU can be cut into, and what a slice has.

Profiles are named as the driver names them: compute slices of seven, memory slices of eight
(``1g.10gb``). Shares and multiprocessors are our own knowledge of the driver's profile tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

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
# Of the whole GPU: an A100 that is cut has ten fewer than one that is not.
_WHOLE = {"ampere": 108, "hopper": 132, "blackwell": 148}


class Whole(Protocol):
    """A GPU, as far as it matters for its slices."""

    @property
    def family(self) -> str: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def driver_memory_mib(self) -> int: ...
    @property
    def compute_major_minor(self) -> tuple[int, int] | None: ...


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of slice: its name, and slices of compute (of 7) and memory (of 8)."""

    name: str
    compute: int
    memory: int

    @property
    def memory_share(self) -> float:
        """Of the GPU's memory and its bandwidth."""
        return self.memory / MEMORY_SLICES


def capable(gpu: Whole) -> bool:
    """Whether the GPU can be cut: A100, Hopper, data-centre Blackwell."""
    major, minor = gpu.compute_major_minor or (0, 0)
    return (major, minor) == (8, 0) or major in (9, 10)


def profiles(gpu: Whole) -> Mapping[str, Profile]:
    """What the GPU can be cut into, by name; empty if it cannot."""
    if not capable(gpu):
        return {}
    # The name has the GPU's memory as sold, rounded half up.
    found = (
        Profile(f"{compute}g.{int(gpu.memory_bytes / 1e9 * memory / MEMORY_SLICES + 0.5)}gb", *rest)
        for compute, memory in _SHAPES
        for rest in ((compute, memory),)
    )
    return {profile.name: profile for profile in found}


def memory_mib(gpu: Whole, profile: Profile) -> int:
    """What the driver tells of a slice's memory; all of it is its container's."""
    return int(gpu.driver_memory_mib * profile.memory_share * _USABLE[profile.memory])


def processors(gpu: Whole, profile: Profile) -> int:
    """Multiprocessors of a slice."""
    return _PROCESSORS[gpu.family][profile.compute]


def compute_share(gpu: Whole, profile: Profile) -> float:
    """Multiprocessors of a slice, as a share of the GPU's."""
    return processors(gpu, profile) / _WHOLE[gpu.family]
