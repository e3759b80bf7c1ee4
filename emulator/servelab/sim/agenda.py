"""What happens when: a heap of things to do, in order of time, then of kind, then of asking."""

import heapq
import math
from collections.abc import Callable
from enum import IntEnum

Act = Callable[[float], None]


class Turn(IntEnum):
    """Who goes first at the same instant: what comes from outside, then work, then decisions."""

    ARRIVAL = 0
    LIFE = 1
    WORK = 2
    DECISION = 3


class Agenda:
    """Things to do. One that is no longer wanted is left in place: whoever set it looks again."""

    def __init__(self, start_s: float) -> None:
        self.now_s = start_s
        self._heap: list[tuple[float, int, int, Act]] = []
        self._serial = 0

    def at(self, at_s: float, turn: Turn, act: Act) -> None:
        """Do it then, or now if that is past; an infinite time is never."""
        if at_s == math.inf:
            return
        self._serial += 1
        heapq.heappush(self._heap, (max(at_s, self.now_s), turn, self._serial, act))

    @property
    def next_s(self) -> float:
        """When the next thing is due; infinite if nothing is."""
        return self._heap[0][0] if self._heap else math.inf

    def pass_to(self, at_s: float) -> None:
        """What is being done found that it is later; never later than what is due next."""
        if at_s > self.now_s:
            self.now_s = at_s

    def step(self) -> None:
        """Do the next thing."""
        self.now_s, _, _, act = heapq.heappop(self._heap)
        act(self.now_s)
