"""A HorizontalPodAutoscaler's limits on a change: stabilization windows, rate policies, bounds.

Source: k8s.io/kubernetes v1.37.2, pkg/controller/podautoscaler/horizontal.go; the defaults of
``behavior`` from pkg/apis/autoscaling/v2/defaults.go.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from modelserve.decide import windows

DOWN_WINDOW_S = 300.0  # horizontal-pod-autoscaler-downscale-stabilization
# Without ``behavior``: at most doubled, or to 4, at a sync (scaleUpLimitFactor, …Minimum).
UP_FACTOR, UP_MINIMUM = 2.0, 4.0
# What is left out of a ``behavior`` that is given.
_PERCENT_100 = windows.Rate(windows.Unit.PERCENT, 100, 15)
DEFAULT_UP = windows.Direction(0.0, (windows.Rate(windows.Unit.PODS, 4, 15), _PERCENT_100))
DEFAULT_DOWN = windows.Direction(DOWN_WINDOW_S, (_PERCENT_100,))
_INT32_MAX, _INT32_MIN = 2**31 - 1, -(2**31)


@dataclass(frozen=True, slots=True)
class Behavior:
    """The limits of both directions."""

    up: windows.Direction = DEFAULT_UP
    down: windows.Direction = DEFAULT_DOWN


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the count by ``change`` pods one way.

    One that is outdated by its own direction's longest period may give its place to a new one,
    though the other direction's policies may still have counted it.
    """

    at_s: float
    change: int
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """Past recommendations, and past changes by direction."""

    recommendations: windows.Recommendations = ()
    ups: tuple[Event, ...] = ()
    downs: tuple[Event, ...] = ()


def remember(past: Memory, count: int, now_s: float, keep_s: float) -> Memory:
    """Add a recommendation; forget those that no window reaches any more."""
    kept = [entry for entry in past.recommendations if entry.at_s >= now_s - keep_s]
    recommended = (*kept, windows.Recommended(now_s, count))
    return Memory(recommended, past.ups, past.downs)


def highest(past: Memory, count: int, now_s: float, window_s: float) -> int:
    """Without ``behavior``: the highest recommendation in the down window, its edge included."""
    entries = past.recommendations
    return max([count, *(e.count for e in entries if e.at_s >= now_s - window_s)])


def stabilize(past: Memory, behavior: Behavior, current: int, count: int, now_s: float) -> int:
    """With ``behavior``: as near to the present count as the windows' recommendations allow."""
    return windows.stabilize(
        current,
        count,
        past.recommendations,
        now_s,
        up_window_s=behavior.up.window_s,
        down_window_s=behavior.down.window_s,
    )


def most_without_behavior(current: int) -> int:
    """The greatest count that a sync may go to."""
    return int(max(UP_FACTOR * current, UP_MINIMUM))


def most(past: Memory, behavior: Behavior, current: int, now_s: float) -> int:
    """The greatest count that the rate policies allow."""
    up = behavior.up
    if up.select is windows.Select.DISABLED:
        return current
    allowed = [_raised(rate, _start(past, current, rate, now_s)) for rate in up.rates]
    if up.select is windows.Select.MIN:
        return max(current, min(allowed, default=_INT32_MAX))
    return max(current, max(allowed, default=_INT32_MIN))


def least(past: Memory, behavior: Behavior, current: int, now_s: float) -> int:
    """The smallest count that the rate policies allow; may be below 0."""
    down = behavior.down
    if down.select is windows.Select.DISABLED:
        return current
    allowed = [_lowered(rate, _start(past, current, rate, now_s)) for rate in down.rates]
    if down.select is windows.Select.MIN:
        return min(current, max(allowed, default=_INT32_MIN))
    return min(current, min(allowed, default=_INT32_MAX))


def changed(past: Memory, behavior: Behavior, current: int, count: int, now_s: float) -> Memory:
    """Note a change of the count."""
    if count > current:
        ups = _noted(past.ups, behavior.up.rates, count - current, now_s)
        return Memory(past.recommendations, ups, past.downs)
    downs = _noted(past.downs, behavior.down.rates, current - count, now_s)
    return Memory(past.recommendations, past.ups, downs)


def _noted(
    events: tuple[Event, ...], rates: Sequence[windows.Rate], change: int, now_s: float
) -> tuple[Event, ...]:
    longest_s = max((rate.period_s for rate in rates), default=0.0)
    marked = [
        Event(event.at_s, event.change, event.outdated or event.at_s < now_s - longest_s)
        for event in events
    ]
    free = [place for place, event in enumerate(marked) if event.outdated]
    if free:
        marked[free[-1]] = Event(now_s, change)
    else:
        marked.append(Event(now_s, change))
    return tuple(marked)


def _start(past: Memory, current: int, rate: windows.Rate, now_s: float) -> int:
    """The count at the start of a rate's period."""
    after_s = now_s - rate.period_s
    up = sum(event.change for event in past.ups if event.at_s > after_s)
    down = sum(event.change for event in past.downs if event.at_s > after_s)
    return current - up + down


def _raised(rate: windows.Rate, start: int) -> int:
    if rate.unit is windows.Unit.PODS:
        return int(start + rate.value)
    return math.ceil(float(start) * (1 + rate.value / 100))


def _lowered(rate: windows.Rate, start: int) -> int:
    if rate.unit is windows.Unit.PODS:
        return int(start - rate.value)
    return int(float(start) * (1 - rate.value / 100))
