"""What traffic is like: the arrival rate λ, the service time Ŝ, and when there last was any.

λ counts arrivals over W = clamp(max(Ŝ, T̂/4), 10 s, 300 s), cut to the time since traffic began,
less one: a lone arrival is backlog, not a rate. Gateways report counts some time after the fact, so
each count is spread over the time it may have come in, and the window ends where the reports do.
Ŝ is the time in a slot: what requests wait in an engine's own queue is left out of it.
"""

import math
from operator import itemgetter
from typing import NamedTuple

from modelserve.decide import demand, drain, gaps, observation, outlook

WINDOW_LEAST_S = 10.0
WINDOW_MOST_S = 300.0
# What is to be expected for a cold start is measured over a good part of one: a burst that is over
# sooner is no rate.
WINDOW_SHARE = 0.25
SLICES = 12  # a window keeps about so many slices of time
SMOOTHING = 0.05  # weight of one completion in Ŝ once there are many
PRIOR_WEIGHT = 4  # completions that the first estimate is worth
_COUNT = itemgetter(2)  # of a slice


class Traffic(NamedTuple):
    """What is remembered of a model's traffic. Times on the clock of ``now_s``."""

    service_s: float | None = None  # Ŝ; None before the first completion
    service_samples: int = 0
    # Seconds that requests on replicas were there, as of when, and how many they were then.
    under_way: tuple[float, float, float] = (0.0, 0.0, 0.0)
    slices: tuple[tuple[float, float, int], ...] = ()  # of time: (from, to, arrivals)
    arrived: int = 0  # ever
    since_s: float | None = None  # when it began
    last_active_s: float | None = None  # the last instant with a request anywhere
    bursts: outlook.Outlook = outlook.Outlook()
    drained: drain.Drain = drain.Drain()
    idle: gaps.Gaps = gaps.Gaps()


def window_s(past: Traffic, parameters: observation.Parameters) -> float:
    """W before it is cut to the time since traffic began."""
    service_s = past.service_s or parameters.service_s
    horizon_s = parameters.cold_start_s * WINDOW_SHARE
    span_s = max(service_s, horizon_s, WINDOW_LEAST_S, parameters.snapshot_s)
    return span_s if span_s < WINDOW_MOST_S else WINDOW_MOST_S


def advance(
    past: Traffic,
    seen: observation.Observation,
    parameters: observation.Parameters,
    now: demand.Demand,
    now_s: float,
    restored_s: float | None = None,
) -> Traffic:
    """Take in what the gateways counted since the last decision.

    ``restored_s``: when the operator came back; what lies over it is no idle gap.
    """
    signal, slots = seen.signal, parameters.slots
    arrivals, total = signal.arrivals, now.total
    if arrivals < 0:
        arrivals = 0
    span_s = window_s(past, parameters)
    slices = _slices(past.slices, arrivals, parameters.snapshot_s, span_s, now_s)
    busy = total > 0 or arrivals > 0 or signal.completions > 0 or seen.wake
    arrived, began_s = past.arrived + arrivals, past.since_s
    if slices and began_s is None:
        began_s = slices[0][0]
    elif not slices and not busy:
        began_s = None
    service_s, samples = _service(past, signal, parameters, now, now_s)
    under_way, age_s = _under_way(past, signal, now, slots, now_s)
    # What ended since the last report still counts as open.
    age_s -= parameters.snapshot_s
    if age_s > (service_s or parameters.service_s):
        service_s = age_s
    known_s, cold_start_s = service_s or parameters.service_s, parameters.cold_start_s
    told_s = parameters.snapshot_s
    return Traffic(
        service_s,
        samples,
        under_way,
        slices,
        arrived,
        began_s,
        now_s if busy or past.last_active_s is None else past.last_active_s,
        outlook.advance(past.bursts, arrived, arrivals, cold_start_s, now_s, told_s),
        drain.advance(past.drained, seen, now, slots, known_s, now_s),
        _idle(past, restored_s, now_s) if arrivals else past.idle,
    )


def _idle(past: Traffic, restored_s: float | None, now_s: float) -> gaps.Gaps:
    """The gap that an arrival ends; not one that a restart of the operator lies in."""
    since_s = past.last_active_s
    if since_s is None or (restored_s is not None and since_s <= restored_s):
        return past.idle
    return gaps.add(past.idle, now_s - since_s)


def _slices(
    slices: tuple[tuple[float, float, int], ...],
    arrivals: int,
    snapshot_s: float,
    span_s: float,
    now_s: float,
) -> tuple[tuple[float, float, int], ...]:
    cutoff_s = now_s - snapshot_s - span_s
    if slices and slices[0][1] <= cutoff_s:
        over = 1
        while over < len(slices) and slices[over][1] <= cutoff_s:
            over += 1
        slices = slices[over:]
    if not arrivals:
        return slices
    from_s = max(slices[-1][1], now_s - snapshot_s) if slices else now_s - snapshot_s
    if slices:
        first_s, last_s, count = slices[-1]
        if last_s == from_s and now_s - first_s <= span_s / SLICES:
            return (*slices[:-1], (first_s, now_s, count + arrivals))
    return (*slices, (from_s, now_s, arrivals))


def _under_way(
    past: Traffic,
    signal: observation.GatewaySignal,
    now: demand.Demand,
    slots: int,
    now_s: float,
) -> tuple[tuple[float, float, float], float]:
    """The seconds that requests on replicas have been there, and their mean age.

    Before as many have ended as a replica has slots, Ŝ cannot be less than that age: a first guess
    that is far too short shows before the first request ends.
    """
    if past.service_samples >= slots:
        return past.under_way, 0.0
    spent_s, at_s, before = past.under_way
    there = now.on_replicas
    if not there:
        return (0.0, now_s, 0.0), 0.0
    ended_s = signal.service_sum_s if math.isfinite(signal.service_sum_s) else 0.0
    # Those that came since the last look came just now, as far as is known.
    spent_s = max(0.0, spent_s + (now_s - at_s) * min(before, there) - max(0.0, ended_s))
    return (spent_s, now_s, there), spent_s / there


def _service(
    past: Traffic,
    signal: observation.GatewaySignal,
    parameters: observation.Parameters,
    now: demand.Demand,
    now_s: float,
) -> tuple[float | None, int]:
    count, total_s = signal.completions, signal.service_sum_s
    if count <= 0 or not math.isfinite(total_s) or total_s < 0:
        return past.service_s, past.service_samples
    full_s = past.drained.full_since_s
    if now.waiting > 0 and full_s is not None and now_s - total_s / count > full_s:
        # They came to full replicas: by Little's law of their time there, as of the requests that
        # are there, this share went by in the engine's queue.
        total_s *= 1 - now.waiting / now.on_replicas
    known_s = past.service_s or parameters.service_s
    weight = max(SMOOTHING, 1 / (past.service_samples + PRIOR_WEIGHT + 1))
    share = 1 - (1 - weight) ** count
    return max(1e-3, known_s + (total_s / count - known_s) * share), past.service_samples + count


def arrival_rate_per_s(
    past: Traffic,
    parameters: observation.Parameters,
    now_s: float,
    span_s: float | None = None,
) -> float:
    """λ in requests per emulated second. ``span_s`` is ``window_s``, where it is known."""
    slices = past.slices
    if not slices:
        return 0.0
    # What came since may not have been told yet: silence is only known up to here.
    told_s = max(slices[-1][1], now_s - parameters.snapshot_s)
    if span_s is None:
        span_s = window_s(past, parameters)
    began_s = past.since_s
    if began_s is not None:
        span_s = min(span_s, max(WINDOW_LEAST_S, told_s - began_s))
    cutoff_s = told_s - span_s
    arrived = float(sum(map(_COUNT, slices)))
    for from_s, to_s, count in slices:
        if from_s >= cutoff_s:
            break
        arrived -= count if to_s <= cutoff_s else count * (cutoff_s - from_s) / (to_s - from_s)
    return max(0.0, arrived - 1) / span_s


def rate_over_s(past: Traffic, parameters: observation.Parameters) -> float:
    """When λ is 0 if nothing more comes: but one arrival has left the window then."""
    left = 1.0
    since_s = -math.inf
    for from_s, to_s, count in reversed(past.slices):
        if count > left:
            since_s = to_s - left / count * (to_s - from_s)
            break
        left -= count
    return since_s + window_s(past, parameters) + parameters.snapshot_s
