"""Axes of plots: where a value lies, and which values are marked. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_ROUND = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``low`` to ``high``, evenly or by powers of ten, over so many pixels from ``start``.

    A negative length runs upwards.
    """

    low: float
    high: float
    start: float
    length: float
    log: bool = False
    whole: bool = False  # only whole numbers are marked

    def at(self, value: float) -> float:
        """The pixel of a value; what lies outside is put at the edge."""
        low, high, here = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, here = math.log10(low), math.log10(high), math.log10(here)
        return self.start + self.length * (here - low) / (high - low)

    def ticks(self, most: int = 6) -> Sequence[float]:
        """Round values along the axis."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), _floor10(self.high) + 1)
            steps = (1,) if len(powers) > 3 else (1, 3)
            found = [
                step * 10.0**power
                for power in range(powers.start - 1, powers.stop)
                for step in steps
            ]
            return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
        step = _step((self.high - self.low) / most)
        step = max(1, math.ceil(step)) if self.whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def even(most: float, start: float, length: float, *, whole: bool = False) -> Axis:
    """From 0 to the highest value; 1 where there is none."""
    high = most if math.isfinite(most) and most > 0 else 1.0
    return Axis(0.0, high, start, length, whole=whole)


def powers(values: Sequence[float], start: float, length: float) -> Axis:
    """By powers of ten around the values, of which those over 0 count; at least one power."""
    known = [value for value in values if math.isfinite(value) and value > 0]
    low, high = (min(known), max(known)) if known else (1.0, 10.0)
    low, high = low / 1.15, high * 1.15
    if high < low * 10:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    return Axis(low, high, start, length, log=True)


def label(value: float) -> str:
    """A tick as text: 0.05, 2, 1500."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _step(least: float) -> float:
    power = 10.0 ** _floor10(least)
    return next(factor * power for factor in _ROUND if factor * power >= least * (1 - 1e-9))


def _floor10(value: float) -> int:
    return math.floor(math.log10(value) + 1e-9)
