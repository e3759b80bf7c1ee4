"""Storage classes: what a node reads, what the backend gives, what a loader reaches.

Numbers come from ``data/storage.yaml``.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import Loader
from modelserve.catalog import files

# What a pod that names neither class nor rate reads from.
DEFAULT = "nvme"


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
    default_loader: Ceiling
    streaming_loader: Ceiling
    page_cache: bool = True  # what was read once stays in the node's memory

    def loader_bytes_per_s(self, loader: str, ranks: int = 1) -> float:
        """Most a loader (``default`` or ``streaming``) reaches here, whatever the device."""
        streaming = Loader(loader) is Loader.STREAMING
        return (self.streaming_loader if streaming else self.default_loader).bytes_per_s(ranks)


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
        default_loader=_ceiling(entry["default"]),
        streaming_loader=_ceiling(entry["streaming"]),
        page_cache=bool(entry.get("page_cache", True)),
    )


def _ceiling(entry: Mapping[str, Any]) -> Ceiling:
    node = entry.get("node")
    return Ceiling(entry["per_rank"] * 1e9, node * 1e9 if node is not None else None)
