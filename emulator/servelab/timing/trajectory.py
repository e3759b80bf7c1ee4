"""One flow's way through its pieces: straight stretches of constant rate, each cut where it bends.

Nothing is summed up while time passes: where a flow is at any time is read off the stretch it is
on, so that many small steps and one large one see the same.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from servelab.timing import fairness


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that pass all links of ``demand`` at once; pieces of a flow follow each other.

    One that does not move counts seconds instead, at a cap of 1.
    """

    size_bytes: float
    demand: fairness.Demand
    moves: bool = True


def wait(seconds: float) -> Piece:
    """A piece that only takes its time."""
    return Piece(seconds, fairness.Demand((), cap_bytes_per_s=1.0), moves=False)


class Stretch(NamedTuple):
    """From ``at_s`` on, with ``left_bytes`` of that piece to move at that rate, until ``due_s``.

    A tuple, because one is made for every flow at every bend.
    """

    at_s: float
    piece: int
    left_bytes: float
    bytes_per_s: float
    due_s: float

    def left_at(self, now_s: float) -> float:
        """Bytes of the piece left at a time within the stretch."""
        if now_s >= self.due_s:
            return 0.0
        return max(0.0, self.left_bytes - self.bytes_per_s * max(0.0, now_s - self.at_s))


@dataclass(slots=True, eq=False)
class Flow:
    """A flow: what was asked of it, and its way as far as it has been worked out.

    ``start_s`` is None while it waits for ``after``; ``stop_s`` ends it wherever it is.
    """

    key: str
    pieces: tuple[Piece, ...]
    asked_s: float
    serial: int
    after: "Flow | None" = None
    start_s: float | None = None
    stop_s: float = math.inf
    end_s: float | None = None
    told: bool = False  # its end was given out
    pinned: bool = False  # somebody acted on its end
    projected_s: float | None = None  # its end, by a run ahead
    stretches: list[Stretch] = field(default_factory=list)
    followers: list["Flow"] = field(default_factory=list)
    links: tuple[str, ...] = ()  # every link that any of its pieces passes

    def __post_init__(self) -> None:
        paths = (piece.demand.path for piece in self.pieces)
        self.links = tuple(dict.fromkeys(itertools.chain.from_iterable(paths)))

    @property
    def live(self) -> bool:
        """Under way at the end of what has been worked out."""
        return bool(self.stretches) and self.end_s is None

    @property
    def demand(self) -> fairness.Demand:
        """Of the piece it is in; only of a live flow."""
        return self.pieces[self.stretches[-1].piece].demand

    @property
    def next_s(self) -> float:
        """When something happens to it next by itself."""
        if self.end_s is not None:
            return math.inf
        if self.stretches:
            return min(self.stretches[-1].due_s, self.stop_s)
        return min(math.inf if self.start_s is None else self.start_s, self.stop_s)

    @property
    def settled_s(self) -> float | None:
        """Its end, if others cannot move it any more; else None."""
        if self.end_s is not None or self.start_s is None:
            return self.end_s
        current = self.stretches[-1].piece if self.stretches else -1
        if any(piece.demand.path for piece in self.pieces[max(0, current) :]):
            return None
        at_s = self.stretches[-1].due_s if self.stretches else self.start_s
        for piece in self.pieces[current + 1 :]:
            at_s += piece.size_bytes / piece.demand.cap_bytes_per_s
        return min(at_s, self.stop_s)

    def enter(self, piece: int, at_s: float) -> None:
        """Begin a piece; its rate is not known yet."""
        if self.stretches and self.stretches[-1].at_s == at_s:
            self.stretches.pop()
        self.stretches.append(Stretch(at_s, piece, self.pieces[piece].size_bytes, 0.0, math.inf))

    def set_rate(self, bytes_per_s: float, at_s: float) -> None:
        """Go on at another rate. Written out, for it is what most time is spent on."""
        began_s, piece, left, rate, due_s = self.stretches[-1]
        left = 0.0 if at_s >= due_s else max(0.0, left - rate * (at_s - began_s))
        seconds = left / bytes_per_s if bytes_per_s else math.inf
        due_s = at_s + seconds if left > 0 else at_s
        following = Stretch(at_s, piece, left, bytes_per_s, due_s)
        if began_s == at_s:
            self.stretches[-1] = following
        else:
            self.stretches.append(following)

    def known_after(self, at_s: float) -> bool:
        """Whether anything was worked out for later than that."""
        bent = bool(self.stretches) and self.stretches[-1].at_s > at_s
        return bent or (self.end_s is not None and self.end_s > at_s)

    def cut(self, at_s: float) -> None:
        """Forget what was worked out for later than ``at_s``; only of a flow not over by then."""
        self.end_s = None
        while self.stretches and self.stretches[-1].at_s > at_s:
            self.stretches.pop()
        before = self.after
        if not self.stretches and before is not None and not before.over(at_s):
            self.start_s = None

    def pin(self) -> None:
        """Somebody acted on its end: whatever starts before it, it does not end later."""
        self.pinned = True
        self.stop_s = self.stop_s if self.end_s is None else self.end_s

    def over(self, now_s: float) -> bool:
        """Whether it had ended by then."""
        return self.end_s is not None and self.end_s <= now_s

    def at(self, now_s: float) -> tuple[float, float]:
        """Bytes moved, and the rate of moving, at ``now_s``."""
        last = len(self.stretches) - 1
        while last >= 0 and self.stretches[last].at_s > now_s:
            last -= 1
        if last < 0:
            return 0.0, 0.0
        found = self.stretches[last]
        moved = total_bytes(self.pieces[: found.piece])
        if not self.pieces[found.piece].moves:
            return moved, 0.0
        until_s = now_s if self.end_s is None else min(now_s, self.end_s)
        moved += self.pieces[found.piece].size_bytes - found.left_at(until_s)
        return moved, 0.0 if self.over(now_s) else found.bytes_per_s


def total_bytes(pieces: Sequence[Piece]) -> float:
    """Bytes that the pieces move."""
    return sum(piece.size_bytes for piece in pieces if piece.moves)
