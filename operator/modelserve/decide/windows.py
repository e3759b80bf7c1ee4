"""Stabilization windows and rate policies, as the HorizontalPodAutoscaler applies them.

Rules: Kubernetes 1.37, pkg/controller/podautoscaler. Window: the count moves as little as it takes
to lie between the least recommendation of the up window and the greatest of the down window. Rates:
each policy allows a change against the count at its period's start; the one allowing most counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a rate's value counts."""

    PERCENT = "Percent"
    PODS = "Pods"


class Select(StrEnum):
    """Which of several rates counts: the one that allows most, least, or none at all."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


PODS, DISABLED = Unit.PODS, Select.DISABLED


@dataclass(frozen=True, slots=True)
class Rate:
    """How much ``period_s`` emulated seconds may change the count."""

    unit: Unit
    value: float
    period_s: float


@dataclass(frozen=True, slots=True)
class Direction:
    """Window and rates of one direction. Without rates, nothing limits a step."""

    window_s: float = 0.0
    rates: tuple[Rate, ...] = ()
    select: Select = Select.MAX


@dataclass(frozen=True, slots=True)
class Recommended:
    """A recommendation and the last instant at which it was in force."""

    at_s: float
    count: int


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the count by ``change`` replicas."""

    at_s: float
    change: int


Recommendations = tuple[Recommended, ...]
Steps = tuple[Step, ...]


def record(past: Recommendations, count: int, now_s: float, keep_s: float) -> Recommendations:
    """Add a recommendation made at ``now_s``, as the HPA does at each sync; forget older ones."""
    return (*within(past, now_s, keep_s), Recommended(now_s, count))


def record_held(past: Recommendations, count: int, now_s: float, keep_s: float) -> Recommendations:
    """Add a recommendation where decisions come at odd times: the newest was in force until now.

    What an earlier and a later entry both enclose can never again be a window's least or greatest
    and is dropped, so the length is bounded by twice the number of distinct counts.
    """
    if len(past) == 1 and past[0].count == count:
        return (Recommended(now_s, count),)
    held = (*past[:-1], Recommended(now_s, past[-1].count)) if past else ()
    if held and held[-1].count == count:
        return _prune(within(held, now_s, keep_s))
    return _prune((*within(held, now_s, keep_s), Recommended(now_s, count)))


def within(past: Recommendations, now_s: float, window_s: float) -> Recommendations:
    """The entries younger than the window."""
    cutoff_s = now_s - window_s
    if not past or past[0].at_s > cutoff_s:
        return past
    return tuple(entry for entry in past if entry.at_s > cutoff_s)


def _prune(past: Recommendations) -> Recommendations:
    """Drop entries that are neither above nor below everything newer."""
    if len(past) < 3:
        return past
    kept: list[Recommended] = []
    low, high = math.inf, -math.inf
    for entry in reversed(past):
        if entry.count < low or entry.count > high:
            kept.append(entry)
            low, high = min(low, entry.count), max(high, entry.count)
    kept.reverse()
    return tuple(kept)


def stabilize(
    current: int,
    count: int,
    past: Recommendations,
    now_s: float,
    *,
    up_window_s: float,
    down_window_s: float,
) -> int:
    """Clamp ``current`` between the up window's least and the down window's greatest."""
    low = least(count, past, now_s, up_window_s)
    return min(max(current, low), greatest(count, past, now_s, down_window_s))


def least(count: int, past: Recommendations, now_s: float, window_s: float) -> int:
    """The least of ``count`` and what the window holds."""
    cutoff_s = now_s - window_s
    for entry in past:
        if entry.count < count and entry.at_s > cutoff_s:
            count = entry.count
    return count


def greatest(count: int, past: Recommendations, now_s: float, window_s: float) -> int:
    """The greatest of ``count`` and what the window holds."""
    cutoff_s = now_s - window_s
    for entry in past:
        if entry.count > count and entry.at_s > cutoff_s:
            count = entry.count
    return count


def changed(steps: Steps, now_s: float, period_s: float) -> int:
    """Sum of the changes in the last period."""
    if not steps:
        return 0
    return sum(step.change for step in steps if step.at_s > now_s - period_s)


def limit_up(current: int, steps: Steps, direction: Direction, now_s: float) -> int:
    """The greatest count that the rates allow now; never below ``current``."""
    if direction.select is DISABLED:
        return current
    allowed = [_proposed_up(current, steps, rate, now_s) for rate in direction.rates]
    if not allowed:
        return 2**31
    return max(current, (min if direction.select is Select.MIN else max)(allowed))


def limit_down(current: int, steps: Steps, direction: Direction, now_s: float) -> int:
    """The least count that the rates allow now; never above ``current`` nor below 0."""
    if direction.select is DISABLED:
        return current
    if not direction.rates:
        return 0
    if len(direction.rates) == 1:
        allowed = _proposed_down(current, steps, direction.rates[0], now_s)
    else:
        every = [_proposed_down(current, steps, rate, now_s) for rate in direction.rates]
        allowed = (max if direction.select is Select.MIN else min)(every)
    return max(0, min(current, allowed))


def _proposed_up(current: int, steps: Steps, rate: Rate, now_s: float) -> int:
    start = current - changed(steps, now_s, rate.period_s)
    if rate.unit is PODS:
        return int(start + rate.value)
    return math.ceil(start * (1 + rate.value / 100))


def _proposed_down(current: int, steps: Steps, rate: Rate, now_s: float) -> int:
    start = current - changed(steps, now_s, rate.period_s)
    if rate.unit is PODS:
        return int(start - rate.value)
    return int(start * (1 - rate.value / 100))


def next_expiry_s(past: Recommendations, count: int, window_s: float) -> float | None:
    """When the newest entry above ``count`` leaves the down window; None if there is none."""
    above = [entry.at_s for entry in past if entry.count > count]
    return max(above) + window_s if above else None


def next_rate_s(steps: Sequence[Step], direction: Direction, now_s: float) -> float | None:
    """When the next step leaves a rate's period, so that the limit may move; None if none does."""
    ends = [
        step.at_s + rate.period_s
        for rate in direction.rates
        for step in steps
        if step.at_s + rate.period_s > now_s
    ]
    return min(ends, default=None)
