"""The outlook: how many requests will come until a replica ordered now could help.

A burst may be over by then. How much of one usually is still there is learnt from the model's own
traffic: for each block of time, how far its rate was from the long-run mean, and how far the mean
rate of the cold start that followed was. Least squares gives the share that persists.
"""

import math
from typing import NamedTuple

BLOCK_S = 10.0
REPORTS = 3.0  # a block holds at least so many of the gateways' reports
BLOCKS_MOST = 16  # a cold start has at most so many blocks; beyond, blocks double in length
MEAN_LEAST_S = 300.0  # time constant of the long-run mean, at least …
MEAN_HORIZONS = 4.0  # … and in cold starts
SETTLED_BLOCKS = 1000  # from some on, the mean moves by its time constant alone
MEMORY_S = 3600.0  # time constant of what was learnt
# Before anything is learnt a burst is taken to last. That is worth so many blocks with a deviation
# of today's size: one far beyond all that was seen is taken at its word again. One, as a prior that
# tells as much as one observation does; half or twice as much makes little difference.
PRIOR_BLOCKS = 1.0
# A deviation counts for what it exceeds this many standard deviations of a Poisson count by.
CHANCE = 2.0


class Outlook(NamedTuple):
    """What is remembered. Rates per emulated second; ``pending`` are blocks without an outcome."""

    made_for: tuple[float, float] = (0.0, 0.0)  # the cold start and reports blocks are made for
    block_s: float = 0.0  # length of a block; 0 before the first
    began_s: float = 0.0  # of the block under way
    total: int = 0  # arrivals of all blocks before it
    blocks: int = 0  # since the mean was zero or unknown
    mean_per_s: float = 0.0
    pending: tuple[tuple[float, float, int], ...] = ()  # deviation, mean, total after the block
    square: float = 0.0  # Σ deviation²
    product: float = 0.0  # Σ deviation · what was left of it

    @property
    def next_s(self) -> float:
        """When the block under way ends."""
        return self.began_s + self.block_s

    def rate_per_s(self, now_per_s: float, over_s: float) -> float:
        """The mean rate to expect, where the rate over the last ``over_s`` was ``now_per_s``."""
        mean = self.mean_per_s
        deviation = beyond_chance(now_per_s - mean, mean / over_s)
        return max(0.0, mean + self.share(deviation) * deviation)

    def share(self, deviation_per_s: float) -> float:
        """The share of a deviation of this size that is still there, on average, 0 to 1."""
        prior = PRIOR_BLOCKS * deviation_per_s**2
        if self.square + prior <= 0:
            return 1.0
        return min(1.0, max(0.0, (self.product + prior) / (self.square + prior)))


def beyond_chance(deviation_per_s: float, variance: float) -> float:
    """The deviation without what chance makes of a rate (the shrinkage of James and Stein)."""
    square = deviation_per_s**2
    return 0.0 if square <= 0 else deviation_per_s * max(0.0, 1 - CHANCE**2 * variance / square)


def restored(mean_per_s: float, square: float, product: float) -> Outlook:
    """From a status. A mean that was known is not worked out anew from the first block."""
    known = SETTLED_BLOCKS if mean_per_s > 0 else 0
    mean_per_s, square = max(0.0, mean_per_s), max(0.0, square)
    return Outlook(blocks=known, mean_per_s=mean_per_s, square=square, product=product)


def advance(
    past: Outlook,
    arrived: int,
    arrivals: int,
    horizon_s: float,
    now_s: float,
    told_every_s: float = 1.0,
) -> Outlook:
    """At a block's end, learn. ``arrived`` counts all arrivals ever, ``arrivals`` the new ones.

    Gateways tell of arrivals every ``told_every_s`` at the latest.
    """
    if not (arrivals or past.block_s or past.mean_per_s):
        return past
    length_s = past.block_s
    if past.made_for != (horizon_s, told_every_s):
        length_s = _block_s(horizon_s, told_every_s)
        past = past._replace(made_for=(horizon_s, told_every_s))
    if past.block_s != length_s:
        past = past._replace(block_s=length_s, began_s=now_s, pending=())
    ended = int((now_s - past.began_s) / length_s)
    if ended <= 0:
        return past
    past = _close(past, arrived - arrivals - past.total, horizon_s)
    past = _quiet(past, ended - 1, horizon_s)
    return past._replace(began_s=past.began_s + ended * length_s)


def _block_s(horizon_s: float, told_every_s: float) -> float:
    """A few blocks a cold start, each of several reports: what is told late makes no burst."""
    least_s = max(BLOCK_S, REPORTS * told_every_s)
    doublings = math.ceil(math.log2(max(1.0, horizon_s / (least_s * BLOCKS_MOST))))
    return float(least_s * 2.0**doublings)


def _quiet(past: Outlook, blocks: int, horizon_s: float) -> Outlook:
    """Blocks without any arrival; a long silence costs no more than a short one."""
    each = min(blocks, 2 * BLOCKS_MOST)
    for _ in range(each):
        past = _close(past, 0, horizon_s)
    rest_s = (blocks - each) * past.block_s
    if rest_s <= 0:
        return past
    # From here on every block is silent, and so is what follows it.
    weight, kept = math.exp(-rest_s / _mean_s(horizon_s)), math.exp(-rest_s / MEMORY_S)
    return past._replace(
        mean_per_s=past.mean_per_s * weight,
        square=past.square * kept,
        product=past.product * kept,
    )


def _mean_s(horizon_s: float) -> float:
    return max(MEAN_LEAST_S, MEAN_HORIZONS * horizon_s)


def _close(past: Outlook, count: int, horizon_s: float) -> Outlook:
    """One block is over: its own deviation waits for its outcome, an older one gets its."""
    length_s = past.block_s
    rate_per_s, total, blocks = count / length_s, past.total + count, past.blocks + 1
    weight = max(1 - math.exp(-length_s / _mean_s(horizon_s)), 1 / blocks)
    mean_per_s = past.mean_per_s + (rate_per_s - past.mean_per_s) * weight
    square, product = past.square, past.product
    deviation = beyond_chance(rate_per_s - mean_per_s, mean_per_s / length_s)
    pending = (*past.pending, (deviation, mean_per_s, total))
    span, kept = max(1, round(horizon_s / length_s)), math.exp(-length_s / MEMORY_S)
    while len(pending) > span:
        after_s = (len(pending) - 1) * length_s
        (then, mean, before), pending = pending[0], pending[1:]
        square = square * kept + then**2
        product = product * kept + then * ((total - before) / after_s - mean)
    return past._replace(
        total=total,
        blocks=blocks,
        mean_per_s=mean_per_s,
        pending=pending,
        square=square,
        product=product,
    )
