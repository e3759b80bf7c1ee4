"""Storage classes: what a node reads, what the backend gives, what a loader reaches.

Numbers come from ``data/storage.yaml``.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from modelserve.catalog import files

# What a pod that names neither class nor rate reads from.
DEFAULT = "nvme"


class Way(StrEnum):
    """Ways in which engines read weights; the first two are the API's loaders."""

    MAPPED = "default"  # mapped files, read as they are touched
    STREAMING = "streaming"  # Run:ai's streamer
    EAGER = "eager"  # each file whole, one after the other
    PREFETCH = "prefetch"  # mapped, with threads that fill the page cache ahead
    FASTSAFETENSORS = "fastsafetensors"
    INSTANTTENSOR = "instanttensor"
    TENSORIZER = "tensorizer"
    DUMMY = "dummy"  # nothing is read


# Whose ceiling holds where a class has none of the way's own: one reader at a time is about as
# fast as mapping is, several reach what the device gives.
_LIKE = {Way.EAGER: Way.MAPPED, Way.DUMMY: Way.MAPPED}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Most bytes per second a loader reaches: one process, and all of a node's together."""

    per_rank_bytes_per_s: float
    node_bytes_per_s: float | None

    def bytes_per_s(self, ranks: int) -> float:
        """With ``ranks`` processes of one replica reading in parallel."""
        total = self.per_rank_bytes_per_s * max(1, ranks)
        return total if self.node_bytes_per_s is None else min(total, self.node_bytes_per_s)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """One kind of storage. ``shared_bytes_per_s`` is None where nodes do not slow each other."""

    name: str
    title: str
    read_bytes_per_s: float
    shared_bytes_per_s: float | None
    latency_s: float
    # Of mapped files and of the streamer at least.
    ceilings: Mapping[Way, Ceiling] = field(hash=False)
    page_cache: bool = True  # what was read once stays in the node's memory
    objects: bool = False  # no files: most loaders have them downloaded first
    network_file_system: bool = False  # NFS or Lustre, as engines tell by the mount

    def loader_bytes_per_s(self, way: str, ranks: int = 1) -> float:
        """Most that a way of reading reaches here, whatever the device."""
        known = Way(way)
        ceiling = self.ceilings.get(known) or self.ceilings[_LIKE.get(known, Way.STREAMING)]
        return ceiling.bytes_per_s(ranks)


def find(name: str) -> StorageClass:
    """The class called ``name``, in any case. Raises UnknownName."""
    found = _index().get(name.strip().lower().replace("_", "-"))
    if found is None:
        raise files.unknown("storage class", name, _index())
    return found


@functools.cache
def all_classes() -> tuple[StorageClass, ...]:
    """Every storage class of the catalogue, in the file's order."""
    return tuple(_from_entry(name, entry) for name, entry in _entries().items())


def sources(name: str) -> tuple[files.Figure, ...]:
    """Each number of a class with its source. Raises UnknownName."""
    return files.figures("storage", _entries()[find(name).name])


def _entries() -> Mapping[str, Mapping[str, Any]]:
    entries: Mapping[str, Mapping[str, Any]] = files.load("storage")["classes"]
    return entries


@functools.cache
def _index() -> Mapping[str, StorageClass]:
    return {storage_class.name: storage_class for storage_class in all_classes()}


def _from_entry(name: str, entry: Mapping[str, Any]) -> StorageClass:
    shared = entry.get("shared_gb_s")
    return StorageClass(
        name=name,
        title=entry["what"],
        read_bytes_per_s=entry["read_gb_s"]["value"] * 1e9,
        shared_bytes_per_s=shared["value"] * 1e9 if shared else None,
        latency_s=entry["latency_ms"]["value"] / 1e3,
        ceilings={way: _ceiling(entry[way.value]) for way in Way if way.value in entry},
        page_cache=bool(entry.get("page_cache", True)),
        objects=bool(entry.get("objects", False)),
        network_file_system=bool(entry.get("network_file_system", False)),
    )


def _ceiling(entry: Mapping[str, Any]) -> Ceiling:
    node = entry.get("node")
    return Ceiling(entry["per_rank"] * 1e9, node * 1e9 if node is not None else None)
