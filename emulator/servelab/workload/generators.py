"""Arrivals drawn from laws: Poisson, gamma, on-off, ramps, windows; lengths by one of two laws.

All of them are streams: a day of traffic takes no memory. Times are emulated seconds from 0, rates
requests per second. The generator is an argument, so that equal seeds give equal draws.
"""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Protocol

from servelab.workload.arrivals import Arrival

# z of the 95th percentile of a normal distribution.
_Z95 = 1.6448536269514722


class LengthLaw(Protocol):
    """How long prompts or answers are."""

    def draw(self, rng: random.Random) -> int:
        """One length in tokens, at least 1."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of a prompt or an answer: ``median``, and where they vary their 95th percentile.

    Log-normal between 1 and ``most``; ``p95`` None: all are equal.
    """

    median: int
    p95: int | None = None
    most: int | None = None

    def draw(self, rng: random.Random) -> int:
        """One length in tokens."""
        if self.p95 is None or self.p95 <= self.median:
            return self.median
        sigma = math.log(self.p95 / self.median) / _Z95
        drawn = round(self.median * math.exp(sigma * rng.gauss(0.0, 1.0)))
        return max(1, drawn if self.most is None else min(drawn, self.most))


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A law known by its quantiles, (share, tokens) in order; straight lines lie between them.

    Below the first and above the last nothing is known, and nothing is made up: they are the ends.
    """

    points: Sequence[tuple[float, float]]

    def draw(self, rng: random.Random) -> int:
        """One length in tokens."""
        share = rng.random()
        first, last = self.points[0], self.points[-1]
        value = first[1] if share < first[0] else last[1]
        for (low, low_tokens), (high, high_tokens) in pairwise(self.points):
            if low <= share < high:
                value = low_tokens + (share - low) / (high - low) * (high_tokens - low_tokens)
        return max(1, round(value))


class GapLaw(StrEnum):
    """Which law gaps follow."""

    GAMMA = "Gamma"
    WEIBULL = "Weibull"


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time with one rate; ``shape`` is the gap law's (1: Poisson)."""

    length_s: float
    per_s: float
    shape: float = 1.0
    law: GapLaw = GapLaw.GAMMA

    def gap(self, rng: random.Random) -> float:
        """A gap in units of the mean gap."""
        if self.law is GapLaw.GAMMA:
            return rng.gammavariate(self.shape, 1 / self.shape)
        return rng.weibullvariate(1 / math.gamma(1 + 1 / self.shape), self.shape)


def poisson(per_s: float, length_s: float, rng: random.Random) -> Iterator[float]:
    """Independent arrivals at a constant rate."""
    at_s = rng.expovariate(per_s)
    while at_s < length_s:
        yield at_s
        at_s += rng.expovariate(per_s)


def gamma(per_s: float, cv: float, length_s: float, rng: random.Random) -> Iterator[float]:
    """Gaps from a gamma law with this coefficient of variation; over 1 they come in bursts."""
    shape = 1 / (cv * cv)
    scale_s = 1 / (per_s * shape)
    at_s = rng.gammavariate(shape, scale_s)
    while at_s < length_s:
        yield at_s
        at_s += rng.gammavariate(shape, scale_s)


def steady(per_s: float, length_s: float) -> Iterator[float]:
    """One every ``1 / per_s`` seconds, the first at 0."""
    count = 0
    while (at_s := count / per_s) < length_s:
        yield at_s
        count += 1


def on_off(
    per_s: float, on_s: float, off_s: float, length_s: float, rng: random.Random
) -> Iterator[float]:
    """Poisson for ``on_s`` seconds, nothing for ``off_s``, over and over."""
    from_s = 0.0
    while from_s < length_s:
        for at_s in poisson(per_s, min(on_s, length_s - from_s), rng):
            yield from_s + at_s
        from_s += on_s + off_s


def ramp(
    from_per_s: float, to_per_s: float, length_s: float, rng: random.Random
) -> Iterator[float]:
    """Poisson at a rate that goes evenly from one to the other."""
    most_per_s = max(from_per_s, to_per_s)
    for at_s in poisson(most_per_s, length_s, rng):
        rate_per_s = from_per_s + (to_per_s - from_per_s) * at_s / length_s
        if rng.random() * most_per_s < rate_per_s:
            yield at_s


def windowed(windows: Iterable[Window], rng: random.Random) -> Iterator[float]:
    """One window after the other, each with its own rate and law.

    A gap that a window cuts goes on in the next, at that one's rate: so each window has its rate on
    average however bursty its law is, and a window without a rate is silent.
    """
    from_s, left = 0.0, math.nan  # of the gap that is running, in mean gaps
    for each in windows:
        room = each.per_s * each.length_s
        if room > 0:
            left = each.gap(rng) if math.isnan(left) else left
            used = 0.0
            while used + left < room:
                used += left
                yield from_s + used / each.per_s
                left = each.gap(rng)
            left -= room - used
        from_s += each.length_s


def cut(windows: Iterable[Window], length_s: float) -> Iterator[Window]:
    """The windows of the first ``length_s`` seconds."""
    left_s = length_s
    for each in windows:
        if each.length_s >= left_s:
            yield replace(each, length_s=left_s)
            return
        left_s -= each.length_s
        yield each


def with_lengths(
    times_s: Iterable[float], prompts: LengthLaw, answers: LengthLaw, rng: random.Random
) -> Iterator[Arrival]:
    """Arrivals at these times. Lengths have a generator of their own."""
    for at_s in times_s:
        yield Arrival(at_s, prompts.draw(rng), answers.draw(rng))
