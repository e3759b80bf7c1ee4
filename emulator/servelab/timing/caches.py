"""What a node has kept: images by layer, with a kubelet's garbage collection, and its page cache.

State in, state out. Sizes are bytes; times are emulated seconds. Thresholds and ages are a
kubelet's defaults; it looks every five minutes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from modelserve.catalog import layers as catalogue

GC_EVERY_S = 300.0


@dataclass(frozen=True, slots=True)
class Kept:
    """An image on the node's disk, since when, and when a container last used it."""

    layers: tuple[catalogue.Layer, ...]
    detected_s: float
    used_s: float

    @property
    def size_bytes(self) -> int:
        """What the runtime says of it, whoever else has its layers."""
        return sum(layer.unpacked_bytes for layer in self.layers)


@dataclass(frozen=True, slots=True)
class Policy:
    """When images go: a kubelet's ``imageGC*`` and ``image*GCAge`` fields. 0: no greatest age."""

    high_percent: int = 85
    low_percent: int = 80
    min_age_s: float = 120.0
    max_age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Images:
    """Images on a disk of ``capacity_bytes``, of which ``other_bytes`` are something else's."""

    capacity_bytes: int
    other_bytes: int = 0
    by_name: Mapping[str, Kept] = field(default_factory=dict)

    def layers(self) -> dict[str, catalogue.Layer]:
        """Each layer that is there, once, whatever number of images have it."""
        return {layer.digest: layer for kept in self.by_name.values() for layer in kept.layers}

    @property
    def used_bytes(self) -> int:
        """Bytes taken on the disk."""
        return self.other_bytes + sum(layer.unpacked_bytes for layer in self.layers().values())

    @property
    def free_bytes(self) -> int:
        return max(0, self.capacity_bytes - self.used_bytes)

    @property
    def used_percent(self) -> int:
        """As a kubelet counts: whole per cent, rounded up."""
        return 100 - self.free_bytes * 100 // self.capacity_bytes


@dataclass(frozen=True, slots=True)
class Swept:
    """What a collection left, and which images went: bytes it wanted, and believes it freed.

    It believes each image's whole size, although layers that others share stay. ``failed``: there
    was not enough to remove (the kubelet's events FreeDiskSpaceFailed and ImageGCFailed).
    """

    images: Images
    gone: tuple[str, ...] = ()
    wanted_bytes: int = 0
    freed_bytes: int = 0

    @property
    def failed(self) -> bool:
        return self.freed_bytes < self.wanted_bytes


def keep(images: Images, name: str, layers: tuple[catalogue.Layer, ...], now_s: float) -> Images:
    """The image has arrived. One that was there already only has its layers replaced."""
    known = images.by_name.get(name)
    kept = replace(known, layers=layers) if known else Kept(layers, now_s, now_s)
    return replace(images, by_name={**images.by_name, name: kept})


def use(images: Images, names: Collection[str], now_s: float) -> Images:
    """Containers use these images now; names that are not there are passed over."""
    used = {
        name: replace(kept, used_s=max(now_s, kept.used_s)) if name in names else kept
        for name, kept in images.by_name.items()
    }
    return replace(images, by_name=used)


def collect(images: Images, in_use: Collection[str], now_s: float, policy: Policy) -> Swept:
    """One round of a kubelet's image garbage collection.

    Images too old go first, if the policy has an age. Then, from the high threshold on, the least
    recently used go until the low one is reached. Used ones stay, and ones younger than the least
    age.
    """
    images = use(images, in_use, now_s)
    idle = sorted(
        (name for name in images.by_name if name not in in_use),
        key=lambda name: (images.by_name[name].used_s, images.by_name[name].detected_s, name),
    )
    by_name = dict(images.by_name)
    too_old = [name for name in idle if 0 < policy.max_age_s < now_s - by_name[name].used_s]
    for name in too_old:
        del by_name[name]
    images = replace(images, by_name=by_name)
    gone, wanted, freed = list(too_old), 0, 0
    if images.used_percent >= policy.high_percent:
        room = images.capacity_bytes * (100 - policy.low_percent) // 100
        wanted = room - images.free_bytes
        for name in idle:
            if freed >= wanted:
                break
            if name in by_name and now_s - by_name[name].detected_s >= policy.min_age_s:
                freed += by_name.pop(name).size_bytes
                gone.append(name)
    return Swept(replace(images, by_name=by_name), tuple(gone), wanted, freed)


@dataclass(frozen=True, slots=True)
class Cached:
    """Files in a node's page cache, the least recently read first: bytes of each that are there."""

    by_file: Mapping[str, int] = field(default_factory=dict)

    @property
    def used_bytes(self) -> int:
        return sum(self.by_file.values())


def room_bytes(memory_bytes: int, used_by_pods_bytes: int, reserved_bytes: int = 0) -> int:
    """What a node's memory has left for its page cache."""
    return max(0, memory_bytes - used_by_pods_bytes - reserved_bytes)


def read(cached: Cached, file: str, size_bytes: int, capacity_bytes: int) -> Cached:
    """The file was read through: it is the most recent, and the oldest pages have made room."""
    others = {name: size for name, size in cached.by_file.items() if name != file}
    kept = min(size_bytes, capacity_bytes)
    return shrink(Cached({**others, file: kept} if kept else others), capacity_bytes)


def shrink(cached: Cached, capacity_bytes: int) -> Cached:
    """Pods took memory: pages go, those of the least recently read files first."""
    excess = cached.used_bytes - capacity_bytes
    left: dict[str, int] = {}
    for name, size in cached.by_file.items():
        dropped = min(size, max(0, excess))
        excess -= dropped
        if size > dropped:
            left[name] = size - dropped
    return Cached(left)


def drop(cached: Cached, file: str) -> Cached:
    """The file was replaced or removed."""
    return Cached({name: size for name, size in cached.by_file.items() if name != file})
