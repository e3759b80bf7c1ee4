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

    Silence is proven from the answer that first showed a stamp until we asked for the one that
    still does. Of that, nothing counts in which the holder may have been kept from renewing as we
    were from looking, by an outage or a pause: what passed before a look that was asked for more
    than ``gap_real_s`` after the last answer, or while we waited for an answer for more than
    ``patience_real_s``. To a server that is merely slow we ask again soon after each answer.
    """

    gap_real_s: float
    patience_real_s: float
    counted_real_s: float = 0.0
    _stamp: object = None
    _asked_real_s: float = -math.inf  # of the last look; where it showed another stamp, answered
    _took_real_s: float = 0.0
    _answered_real_s: float = -math.inf

    def see(self, stamp: object, now_real_s: float, took_real_s: float = 0.0) -> None:
        """An answer, and how long it took. Only another ``stamp`` than before is a renewal."""
        asked_real_s = now_real_s - took_real_s
        close = asked_real_s - self._answered_real_s <= self.gap_real_s
        if stamp != self._stamp:
            self._stamp, self.counted_real_s = stamp, 0.0
            asked_real_s, took_real_s = now_real_s, 0.0
        elif close and self._took_real_s <= self.patience_real_s:
            self.counted_real_s += asked_real_s - self._asked_real_s
        self._asked_real_s, self._took_real_s = asked_real_s, took_real_s
        self._answered_real_s = now_real_s

    def look(self, now_real_s: float, took_real_s: float = 0.0) -> None:
        """There is no Lease any more, which renews nothing."""
        self.see(self._stamp, now_real_s, took_real_s)
