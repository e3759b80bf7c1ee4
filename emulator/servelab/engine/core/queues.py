"""Who waits, in which order, and who runs."""

import bisect
from collections import deque

from servelab.engine.core.sequences import TURN, Sequence


class Queues:
    """Those who wait, first come, first served or ``by_priority``, and those who run, in order.

    Those who were cancelled are ``leaving`` until the scheduler knows.
    """

    __slots__ = ("by_priority", "leaving", "running", "waiting")

    def __init__(self, *, by_priority: bool) -> None:
        self.by_priority = by_priority
        self.waiting: deque[Sequence] = deque()
        self.running: dict[str, Sequence] = {}
        self.leaving: dict[Sequence, None] = {}

    def queue(self, sequence: Sequence) -> None:
        """One more waits."""
        if self.by_priority:
            bisect.insort(self.waiting, sequence, key=TURN)
        else:
            self.waiting.append(sequence)

    def next(self, now_s: float, front_s: float) -> Sequence | None:
        """Who starts next of those who came so long ago, if anybody waits."""
        for sequence in self.waiting:
            if sequence.arrived_s + front_s <= now_s:
                return sequence
            if not self.by_priority:
                break
        return None

    @property
    def oldest_s(self) -> float:
        """When the first of those who wait came; there is one."""
        if self.by_priority:
            return min(sequence.arrived_s for sequence in self.waiting)
        return self.waiting[0].arrived_s

    @property
    def left(self) -> tuple[int, int]:
        """How many of the leaving ones run, and how many wait."""
        run = sum(self.running.get(each.id) is each for each in self.leaving)
        return run, len(self.leaving) - run
