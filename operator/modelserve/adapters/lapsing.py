"""A Lease runs out by two clocks: its holder's, who stops in time, and that of who waits. Pure.

Each counts on its own monotonic clock; no stamps of the other are compared with it.
"""

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Mandate:
    """Whether a holder may still act: a renewal got through within ``span_real_s``.

    ``term`` changes with each lapse: what was so in another need not be so any more.
    """

    span_real_s: float
    term: int = 0
    _until_real_s: float = -math.inf

    def renewed(self, asked_real_s: float, now_real_s: float) -> None:
        """A renewal got through that was asked for then: others count from no earlier."""
        if not self.holds(now_real_s):
            self.term += 1
        self._until_real_s = asked_real_s + self.span_real_s

    def holds(self, now_real_s: float) -> bool:
        return now_real_s < self._until_real_s

    def left_real_s(self, now_real_s: float) -> float:
        """How long it holds yet."""
        return max(0.0, self._until_real_s - now_real_s)


@dataclass(slots=True)
class Stillness:
    """For how long who waits has looked at a Lease and seen no renewal.

    Time between two looks that lie further apart than ``gap_real_s`` is not counted: when the API
    server was away, or we were paused, the holder may have been as well.
    """

    gap_real_s: float
    counted_real_s: float = 0.0
    _stamp: object = None
    _looked_real_s: float = -math.inf

    def see(self, stamp: object, now_real_s: float) -> None:
        """Only another ``stamp`` than before is a renewal."""
        passed_real_s = now_real_s - self._looked_real_s
        self._looked_real_s = now_real_s
        if stamp != self._stamp:
            self._stamp, self.counted_real_s = stamp, 0.0
        elif passed_real_s <= self.gap_real_s:
            self.counted_real_s += passed_real_s

    def look(self, now_real_s: float) -> None:
        """There is no Lease any more, which renews nothing."""
        self.see(self._stamp, now_real_s)
