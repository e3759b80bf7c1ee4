"""What happens when, next first: flows that turn by themselves, and links whose rates change."""

import heapq
import itertools
import math
from collections.abc import Iterator

from servelab.timing import trajectory

# It is cleared of what is out of date when it is this many times as long as needed.
SLACK = 8
ROOM = 64
# A flow, or a link by name.
Thing = trajectory.Flow | str


class Agenda:
    """A flow's entry counts while it says when the flow turns next; one of a link always does."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Thing]] = []
        self._serial = itertools.count()

    @property
    def next_s(self) -> float:
        """When the first entry is due, be it out of date; infinite without any."""
        return self._entries[0][0] if self._entries else math.inf

    def wake_s(self) -> float:
        """When the first entry is due that counts; infinite without any."""
        while self._entries and not _counts(self._entries[0]):
            heapq.heappop(self._entries)
        return self.next_s

    def push(self, at_s: float, thing: Thing, needed: int) -> None:
        """Note it, unless that is never. ``needed`` is how many things may have an entry."""
        if at_s == math.inf:
            return
        heapq.heappush(self._entries, (at_s, next(self._serial), thing))
        if len(self._entries) > SLACK * (ROOM + needed):
            kept = {(entry[0], entry[2]): entry for entry in self._entries if _counts(entry)}
            self._entries = list(kept.values())
            heapq.heapify(self._entries)

    def due(self) -> Iterator[Thing]:
        """Take all that is due at the first time, and what is noted for it meanwhile."""
        at_s = self.next_s
        while self._entries and self._entries[0][0] == at_s:
            entry = heapq.heappop(self._entries)
            if _counts(entry):
                yield entry[2]


def _counts(entry: tuple[float, int, Thing]) -> bool:
    at_s, _, thing = entry
    return isinstance(thing, str) or thing.next_s == at_s
