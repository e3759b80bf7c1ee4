"""Bytes that a cold start moves, under which limits, and how long that takes alone."""

from dataclasses import dataclass
from enum import StrEnum


class Binds(StrEnum):
    """What limits a transfer."""

    REGISTRY = "registry"
    STREAMS = "layer downloads"
    UNPACK = "unpack"
    NETWORK = "network"
    STORAGE = "storage"
    SHARED_STORAGE = "shared storage"
    SPEC = "storage.readBandwidth"
    LOADER = "loader"
    PCIE = "PCIe"
    PAGE_CACHE = "page cache"
    CACHED = "cache"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of a transfer. A shared one is a link that other replicas use too."""

    binds: Binds
    bytes_per_s: float
    shared: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes that pass all of ``limits`` at once, so many times each, after ``latency_s``."""

    n_bytes: int
    limits: tuple[Limit, ...]
    latency_s: float = 0.0
    times: int = 1

    @property
    def moved_bytes(self) -> int:
        """What passes the limits."""
        return self.n_bytes * self.times

    @property
    def limit(self) -> Limit:
        """The limit that binds when the transfer is alone on its links."""
        return min(self.limits, key=lambda limit: limit.bytes_per_s)

    @property
    def duration_s(self) -> float:
        """Seconds when alone on its links."""
        return self.latency_s + self.moved_bytes / self.limit.bytes_per_s


@dataclass(frozen=True, slots=True)
class Pull:
    """An image pull: layers are downloaded, and unpacked one at a time while later ones arrive."""

    present: bool
    download: Transfer
    unpack_bytes_per_s: float
    largest_layer_share: float
    cached_s: float

    @property
    def unpack_s(self) -> float:
        """Seconds of unpacking everything, by itself."""
        return self.download.n_bytes / self.unpack_bytes_per_s

    def total_s(self, download_s: float) -> float:
        """Seconds of a pull whose download takes ``download_s``, alone or with others on the link.

        ``max(download + share × unpack, share × download + unpack)``: the first layer must arrive
        before anything unpacks, and the last unpacks when everything has arrived.
        """
        share = self.largest_layer_share
        return max(download_s + share * self.unpack_s, share * download_s + self.unpack_s)

    @property
    def duration_s(self) -> float:
        """Seconds when alone; next to nothing if the image is there."""
        return self.cached_s if self.present else self.total_s(self.download.duration_s)

    @property
    def binds(self) -> Binds:
        """What the pull waits for longest."""
        if self.present:
            return Binds.CACHED
        slower = self.unpack_s > self.download.duration_s
        return Binds.UNPACK if slower else self.download.limit.binds
