"""Work that moves bytes over links: how far it is, and when it ends.

Phases of a cold start take their time from ``Transfers``. ``Alone`` gives each transfer its links
for itself; in ``shared.Shared`` transfers share links, and an end moves when others start: whoever
waits asks ``ends_at_s`` again whenever ``changes`` went up.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a transfer: after ``latency_s``, bytes that pass all links of ``path`` at once.

    ``cap_bytes_per_s`` is what it reaches at most by itself; ``connections`` says how many shares
    of a full link it takes. Without bytes, it only waits.
    """

    size_bytes: float = 0.0
    path: tuple[str, ...] = ()
    cap_bytes_per_s: float = math.inf
    latency_s: float = 0.0
    connections: int = 1

    def scaled(self, factor: float) -> "Stage":
        """With that many times the bytes on the wire and the latency: it takes as much longer."""
        return replace(self, size_bytes=self.size_bytes * factor, latency_s=self.latency_s * factor)


@dataclass(frozen=True, slots=True)
class Work:
    """A transfer: emulated seconds it takes alone on its links, bytes it moves (0: unknown).

    ``stages`` say over which links, one after the other; without any, it takes its duration
    whatever others do.
    """

    duration_s: float
    size_bytes: float = 0.0
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes moved and to move, rate now, seconds left. All emulated."""

    done_bytes: float
    size_bytes: float
    bytes_per_s: float
    left_s: float


class Transfers(Protocol):
    """Transfers under way, by key. ``now_s`` and results are emulated seconds."""

    @property
    def changes(self) -> int:
        """Counts the changes of ends that were already given out."""
        ...

    def start(self, key: str, work: Work, now_s: float, after: str | None = None) -> None:
        """Begin at ``now_s``, or when the transfer ``after`` has ended, if that is later.

        A key that already runs begins anew. ``now_s`` may lie in the past.
        """
        ...

    def ends_at_s(self, key: str) -> float:
        """When it ends, if nothing else starts. Raises KeyError for an unknown key."""
        ...

    def progress(self, key: str, now_s: float) -> Progress:
        """How far it is. Raises KeyError for an unknown key."""
        ...

    def stop(self, key: str, now_s: float | None = None) -> None:
        """Forget it, finished or not, from ``now_s`` on; an unknown key is fine."""
        ...


class Alone:
    """Every transfer has its links for itself."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Work, float]] = {}

    @property
    def changes(self) -> int:
        return 0

    def start(self, key: str, work: Work, now_s: float, after: str | None = None) -> None:
        known = after is not None and after in self._running
        before_s = self.ends_at_s(after) if known and after is not None else now_s
        self._running[key] = (work, max(now_s, before_s))

    def ends_at_s(self, key: str) -> float:
        work, started_s = self._running[key]
        return started_s + work.duration_s

    def progress(self, key: str, now_s: float) -> Progress:
        work, started_s = self._running[key]
        left_s = min(work.duration_s, max(0.0, started_s + work.duration_s - now_s))
        rate = work.size_bytes / work.duration_s if work.duration_s else 0.0
        return Progress(work.size_bytes - rate * left_s, work.size_bytes, rate, left_s)

    def stop(self, key: str, now_s: float | None = None) -> None:
        self._running.pop(key, None)
