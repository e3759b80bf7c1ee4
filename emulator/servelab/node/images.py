"""Images on one node: which are there, and the queue of pulls."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.catalog import images as catalogue
from servelab.timing import transfers

# node.status.images is capped, as by a kubelet.
MAX_LISTED = 50


@dataclass(frozen=True, slots=True)
class PullState:
    """One pull. Emulated seconds: asked for, begun, and end (None while it waits its turn)."""

    asked_s: float
    begun_s: float
    ends_s: float
    size_bytes: int


def digest(image: str) -> str:
    """A stable sha256 for an image name, in place of the real content's."""
    return f"sha256:{hashlib.sha256(catalogue.canonical(image).encode()).hexdigest()}"


class NodeImages:
    """The image store of one node. Times are emulated seconds.

    With ``serialize``, one pull at a time in the order they were asked for, as a kubelet does by
    default. Two pods that want the same image pull it once.
    """

    def __init__(
        self,
        moves: transfers.Transfers,
        node: str,
        *,
        serialize: bool = True,
        cached_s: float = 0.5,
    ) -> None:
        """``cached_s``: a pull of what is there already, which asks the registry all the same."""
        self._transfers = moves
        self._node = node
        self._serialize = serialize
        self._cached_s = cached_s
        self._sizes: dict[str, int] = {}
        self._pulls: dict[str, tuple[str, PullState]] = {}
        self._orphans: set[str] = set()
        self._queue_free_s = 0.0

    def present(self, image: str) -> bool:
        return catalogue.canonical(image) in self._sizes

    def add(self, image: str, size_bytes: int) -> bool:
        """Note that the image is there; returns whether that is news."""
        name = catalogue.canonical(image)
        news = name not in self._sizes
        self._sizes[name] = max(size_bytes, self._sizes.get(name, 0))
        return news

    def pull(self, key: str, image: str, work: transfers.Work, now_s: float) -> None:
        """Ask for an image; ``key`` names the asking container. ``now_s`` may lie in the past."""
        name = catalogue.canonical(image)
        begun_s = max(now_s, self._queue_free_s) if self._serialize else now_s
        under_way = [state for known, state in self._pulls.values() if known == name]
        if self.present(image) or under_way:
            # The bytes are there or on their way: all that is left is to wait and to look.
            wait_s = max([0.0, *(s.ends_s - begun_s for s in under_way)])
            work = transfers.Work(wait_s + self._cached_s, work.size_bytes)
        self._transfers.start(f"{self._node}/pull/{key}", work, begun_s)
        ends_s = self._transfers.ends_at_s(f"{self._node}/pull/{key}")
        self._queue_free_s = ends_s if self._serialize else 0.0
        state = PullState(now_s, begun_s, ends_s, round(work.size_bytes))
        self._pulls[key] = (name, state)

    def state(self, key: str) -> PullState:
        """The pull asked for under ``key``. Raises KeyError if there is none."""
        return self._pulls[key][1]

    def progress(self, key: str, now_s: float) -> transfers.Progress:
        """How far the pull is. Raises KeyError if there is none."""
        return self._transfers.progress(f"{self._node}/pull/{key}", now_s)

    def finish(self, key: str) -> PullState:
        """Take the image in and forget the pull."""
        name, state = self._pulls.pop(key)
        self._transfers.stop(f"{self._node}/pull/{key}")
        self.add(name, state.size_bytes)
        return state

    def abandon(self, key: str) -> None:
        """The pod is gone; the runtime finishes the pull it began, and the image stays."""
        if key in self._pulls:
            self._orphans.add(key)

    def settle(self, now_s: float) -> bool:
        """Take in what arrived for pods that are gone; returns whether an image is new."""
        over = [key for key in self._orphans if self._pulls[key][1].ends_s <= now_s]
        news = any(not self.present(self._pulls[key][0]) for key in over)
        for key in over:
            self._orphans.discard(key)
            self.finish(key)
        return news

    def restore(self, listed: Iterable[Mapping[str, Any]]) -> None:
        """Take over what ``node.status.images`` lists."""
        for entry in listed:
            for name in entry.get("names") or ():
                if "@" not in name:
                    self.add(name, int(entry.get("sizeBytes", 0)))

    def listing(self) -> list[dict[str, Any]]:
        """``node.status.images``: largest first, with digest and tag names."""
        by_size = sorted(self._sizes.items(), key=lambda item: (-item[1], item[0]))
        return [{"names": _names(name), "sizeBytes": size} for name, size in by_size[:MAX_LISTED]]


def _names(name: str) -> list[str]:
    if "@" in name:
        return [name]
    return [f"{name.rpartition(':')[0]}@{digest(name)}", name]
