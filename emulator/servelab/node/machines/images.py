"""Images on one node: which are there, by layer, the queue of pulls, and garbage collection."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from modelserve.catalog import images as catalogue
from modelserve.catalog import layers
from servelab.timing import caches, routes, transfers

# node.status.images is capped, as by a kubelet.
MAX_LISTED = 50
EVER_S = float("-inf")
# The disk of a node whose pool says nothing (its ephemeral storage).
DISK_BYTES = 3686 * 2**30


@dataclass(frozen=True, slots=True)
class PullState:
    """One pull as it stands. Emulated seconds: asked for, begun, and end; the last two move."""

    asked_s: float
    begun_s: float
    ends_s: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Pull:
    """What was asked for; ``behind`` is the pull before it in the queue, ``free_s`` its end.

    ``needs`` are pulls that bring layers of it, and ``met_s`` the end of those that are over.
    """

    image: str
    asked_s: float
    layers: tuple[layers.Layer, ...]
    free_s: float
    behind: str | None
    needs: tuple[str, ...] = ()
    met_s: float = EVER_S

    @property
    def size_bytes(self) -> int:
        """What the runtime says of the image: its compressed layers."""
        return sum(layer.compressed_bytes for layer in self.layers)


def digest(image: str) -> str:
    """A stable sha256 for an image name, in place of the real content's."""
    return f"sha256:{hashlib.sha256(catalogue.canonical(image).encode()).hexdigest()}"


def reference(image: str) -> str:
    """What a runtime calls an image that it pulled: ``imageID`` of a container."""
    return _names(catalogue.canonical(image))[0]


class NodeImages:
    """The image store of one node. Times are emulated seconds.

    With ``serialize``, one pull at a time in the order they were asked for, as a kubelet does by
    default. Two pods that want the same image pull it once; layers that another image has, or that
    are on their way for it, are not fetched.
    """

    def __init__(
        self,
        moves: transfers.Transfers,
        node: str,
        *,
        serialize: bool = True,
        cached_s: float = 0.5,
        disk_bytes: int = DISK_BYTES,
        policy: caches.Policy | None = None,
    ) -> None:
        """``cached_s``: a pull of what is there already, which asks the registry all the same."""
        self._transfers = moves
        self._node = node
        self._serialize = serialize
        self._cached_s = cached_s
        self._policy = policy or caches.Policy()
        self._kept = caches.Images(disk_bytes)
        self._pulls: dict[str, _Pull] = {}
        self._orphans: set[str] = set()
        self._last: str | None = None
        self._queue_free_s = EVER_S

    @property
    def names(self) -> Collection[str]:
        """Full names of the images that are there."""
        return self._kept.by_name.keys()

    def present(self, image: str) -> bool:
        return catalogue.canonical(image) in self._kept.by_name

    def digests(self) -> frozenset[str]:
        """The layers that are there, or on their way for some image."""
        coming = (layer.digest for pull in self._pulls.values() for layer in pull.layers)
        return frozenset([*self._kept.layers(), *coming])

    def add(self, image: str, size_bytes: int, now_s: float = 0.0) -> bool:
        """Note that the image is there; returns whether that is news."""
        name = catalogue.canonical(image)
        return self._take(name, layers.of(name, size_bytes), now_s)

    def pull(self, key: str, image: str, work: transfers.Work, now_s: float) -> None:
        """Ask for an image; ``key`` names the asking container. ``now_s`` may lie in the past."""
        name = catalogue.canonical(image)
        every = work.layers if isinstance(work, routes.ImagePull) else ()
        every = every or layers.of(name, round(work.size_bytes))
        behind = self._last if self._serialize and self._last != key else None
        behind = behind if behind in self._pulls else None
        free_s = self._queue_free_s if self._serialize else EVER_S
        others = {k: pull for k, pull in self._pulls.items() if k != key}
        coming = [k for k, pull in others.items() if pull.image == name]
        after, needs = behind, tuple[str, ...]()
        if self.present(image) or coming:
            # The bytes are there or on their way: all that is left is to wait and to look.
            work = transfers.Work(self._cached_s, work.size_bytes)
            if coming and not self._serialize:
                after = max(coming, key=self._ends_s)
        elif isinstance(work, routes.ImagePull):
            wanted = {layer.digest for layer in every} - self._kept.layers().keys()
            needs = tuple(k for k, pull in others.items() if not wanted.isdisjoint(_has(pull)))
            there = {*self._kept.layers(), *(d for k in needs for d in _has(others[k]))}
            missing = layers.missing(every, there)
            work = work if len(missing) == len(every) else work.only(missing)
        # One that waits its turn waits for those before it anyhow.
        needs = () if self._serialize else needs
        self._pulls[key] = _Pull(name, now_s, every, free_s, behind, needs)
        self._last = key
        before = None if after is None else self._transfer(after)
        self._transfers.start(self._transfer(key), work, max(now_s, free_s), before)

    def state(self, key: str) -> PullState:
        """The pull asked for under ``key``, as it stands. Raises KeyError if there is none."""
        pull = self._pulls[key]
        begun_s = max(pull.asked_s, pull.free_s)
        if pull.behind is not None:
            begun_s = max(begun_s, self._ends_s(pull.behind))
        return PullState(pull.asked_s, begun_s, self._ends_s(key), pull.size_bytes)

    def progress(self, key: str, now_s: float) -> transfers.Progress:
        """How far the pull is. Raises KeyError if there is none."""
        return self._transfers.progress(self._transfer(key), now_s)

    def finish(self, key: str) -> PullState:
        """Take the image in and forget the pull."""
        state, pull = self.state(key), self._pulls.pop(key)
        if self._serialize:
            self._queue_free_s = max(self._queue_free_s, state.ends_s)
        for other, waiting in self._pulls.items():
            if waiting.behind == key:
                waiting = self._pulls[other] = replace(waiting, free_s=state.ends_s, behind=None)
            if key in waiting.needs:
                left = tuple(need for need in waiting.needs if need != key)
                met_s = max(waiting.met_s, state.ends_s)
                self._pulls[other] = replace(waiting, needs=left, met_s=met_s)
        self._transfers.stop(self._transfer(key), state.ends_s)
        self._take(pull.image, pull.layers, state.ends_s)
        return state

    def abandon(self, key: str) -> None:
        """The pod is gone; the runtime finishes the pull it began, and the image stays."""
        if key in self._pulls:
            self._orphans.add(key)

    def settle(self, now_s: float) -> bool:
        """Take in what arrived for pods that are gone; returns whether an image is new."""
        over = [key for key in self._orphans if self._ends_s(key) <= now_s]
        news = any(not self.present(self._pulls[key].image) for key in over)
        for key in over:
            self._orphans.discard(key)
            self.finish(key)
        return news

    def collect(self, in_use: Iterable[str], now_s: float) -> caches.Swept:
        """One round of garbage collection; ``in_use`` are images of containers that are there."""
        pulled = (pull.image for pull in self._pulls.values())
        used = {*map(catalogue.canonical, in_use), *pulled}
        swept = caches.collect(self._kept, used, now_s, self._policy)
        self._kept = swept.images
        return swept

    def _take(self, name: str, every: tuple[layers.Layer, ...], now_s: float) -> bool:
        news = name not in self._kept.by_name
        if news or _size(every) > _size(self._kept.by_name[name].layers):
            self._kept = caches.keep(self._kept, name, every, now_s)
        return news

    def _transfer(self, key: str) -> str:
        return f"{self._node}/pull/{key}"

    def _ends_s(self, key: str) -> float:
        pull = self._pulls[key]
        others_s = (self._ends_s(need) for need in pull.needs)
        return max(self._transfers.ends_at_s(self._transfer(key)), pull.met_s, *others_s)

    def restore(self, listed: Iterable[Mapping[str, Any]]) -> None:
        """Take over what ``node.status.images`` lists."""
        for entry in listed:
            for name in entry.get("names") or ():
                if "@" not in name:
                    self.add(name, int(entry.get("sizeBytes", 0)))

    def listing(self) -> list[dict[str, Any]]:
        """``node.status.images``: largest first, with digest and tag names."""
        sizes = {name: _size(kept.layers) for name, kept in self._kept.by_name.items()}
        by_size = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
        return [{"names": _names(name), "sizeBytes": size} for name, size in by_size[:MAX_LISTED]]


def _has(pull: _Pull) -> Collection[str]:
    return {layer.digest for layer in pull.layers}


def _size(every: Iterable[layers.Layer]) -> int:
    return sum(layer.compressed_bytes for layer in every)


def _names(name: str) -> list[str]:
    if "@" in name:
        return [name]
    return [f"{name.rpartition(':')[0]}@{digest(name)}", name]
