"""A model's idle gaps, from one request's end to the next one's arrival, by length class.

They say how long the last replica is worth keeping: the p99 of those gaps that a cooldown can
bridge at all (the hybrid histogram policy of "Serverless in the Wild", ATC'20). One gap more than
was seen counts as the longest, so that a few short ones say nothing of the longest in a hundred.
Where hardly any gap can be bridged there is no reason to wait.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST_S = 10.0  # what is shorter is a pause, not idleness
PER_DOUBLING = 4
CLASSES = 64  # the last one begins at some six days
ENOUGH = 10  # gaps before anything is learnt
MOST = 1000  # then all counts are halved: what was counts less and less
QUANTILE = 0.99
LEAST_BRIDGED = 0.1  # share of gaps below which none is waited for


@dataclass(frozen=True, slots=True)
class Gaps:
    """Counts by class. Class k begins at ``SHORTEST_S * 2 ** (k / PER_DOUBLING)`` seconds."""

    counts: tuple[int, ...] = ()

    def worth_s(self, longest_s: float) -> float | None:
        """How long to wait for the next request; None until there are enough gaps.

        0 where hardly any gap ends within ``longest_s``.
        """
        total = sum(self.counts)
        if total < ENOUGH:
            return None
        bridged = [n for k, n in enumerate(self.counts) if _end_s(k) <= longest_s]
        if sum(bridged) < LEAST_BRIDGED * total:
            return 0.0
        needed, seen = QUANTILE * (sum(bridged) + 1), 0
        for kind, count in enumerate(bridged):
            seen += count
            if seen >= needed:
                return _end_s(kind)
        return longest_s


def add(past: Gaps, gap_s: float) -> Gaps:
    """One more gap."""
    if not gap_s >= SHORTEST_S or not math.isfinite(gap_s):
        return past
    kind = min(CLASSES - 1, int(PER_DOUBLING * math.log2(gap_s / SHORTEST_S)))
    counts = list(past.counts) + [0] * (kind + 1 - len(past.counts))
    counts[kind] += 1
    if sum(counts) > MOST:
        counts = [count // 2 for count in counts]
    return Gaps(tuple(counts))


def restored(counts: Sequence[int]) -> Gaps:
    """From a status; what cannot be is left out."""
    return Gaps(tuple(max(0, count) for count in counts[:CLASSES]))


def _end_s(kind: int) -> float:
    return float(SHORTEST_S * 2.0 ** ((kind + 1) / PER_DOUBLING))
