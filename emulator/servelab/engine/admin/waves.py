"""Figures as functions of time: what a queue metric shows instead of the truth.

``t_s`` are emulated seconds since the wave was set; a wave is over a span of them.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Wave(Protocol):
    """A figure for each moment from 0 on."""

    def at(self, t_s: float) -> float: ...


class Then(StrEnum):
    """What a ramp does at its end."""

    HOLD = "hold"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same all the time."""

    value: float

    def at(self, t_s: float) -> float:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Ramp:
    """A straight line from one figure to another; then it stays there, or starts again."""

    start: float
    end: float
    over_s: float
    then: Then = Then.HOLD

    def at(self, t_s: float) -> float:
        """The point of the line; the end itself is only reached by a ramp that holds."""
        done = t_s / self.over_s
        if self.then is Then.REPEAT:
            done %= 1.0
        elif done >= 1.0:
            return self.end
        return self.start + (self.end - self.start) * done


@dataclass(frozen=True, slots=True)
class Square:
    """Low, then high, over and over; ``duty`` (0 to 1) is the share of a period it is high."""

    low: float
    high: float
    period_s: float
    duty: float = 0.5

    def at(self, t_s: float) -> float:
        """Low or high; a period begins with low."""
        return self.high if t_s / self.period_s % 1.0 >= 1.0 - self.duty else self.low


@dataclass(frozen=True, slots=True)
class Sine:
    """Between low and high and back in a period, smoothly, from low."""

    low: float
    high: float
    period_s: float

    def at(self, t_s: float) -> float:
        """The point of the curve."""
        up = (1.0 - math.cos(2 * math.pi * (t_s / self.period_s % 1.0))) / 2
        return self.low + (self.high - self.low) * up


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start_s`` on, for ``for_s``; None: for ever."""

    start_s: float = 0.0
    for_s: float | None = None

    @property
    def end_s(self) -> float:
        """When it is over; infinite if it never is."""
        return math.inf if self.for_s is None else self.start_s + self.for_s

    def holds(self, t_s: float) -> bool:
        """Whether the moment is in it."""
        return self.start_s <= t_s < self.end_s
