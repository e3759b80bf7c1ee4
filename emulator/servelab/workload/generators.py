"""Arrivals drawn from laws: Poisson, gamma, on-off, ramps; lengths fixed or log-normal.

All of them are streams: a day of traffic takes no memory. Times are emulated seconds from 0, rates
requests per second. The generator is an argument, so that equal seeds give equal draws.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from servelab.workload.arrivals import Arrival

# z of the 95th percentile of a normal distribution.
_Z95 = 1.6448536269514722


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


def with_lengths(
    times_s: Iterator[float], prompts: Lengths, answers: Lengths, rng: random.Random
) -> Iterator[Arrival]:
    """Arrivals at these times. Lengths have a generator of their own."""
    for at_s in times_s:
        yield Arrival(at_s, prompts.draw(rng), answers.draw(rng))
