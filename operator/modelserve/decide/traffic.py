"""What traffic is like: the arrival rate λ, the service time Ŝ, and when there last was any.

λ counts arrivals over W = clamp(Ŝ, 10 s, 300 s), cut to the time since traffic began, less one: a
lone arrival is backlog, not a rate. Gateways report counts some time after the fact, so each count
is spread over the time it may have come in, and the window ends where the reports do.
"""

import dataclasses
import math

from modelserve.decide import demand, observation, state

WINDOW_LEAST_S = 10.0
WINDOW_MOST_S = 300.0
SLICES = 40  # a window keeps about so many slices of time
SMOOTHING = 0.05  # weight of one completion in Ŝ once there are many
PRIOR_WEIGHT = 4  # completions that the first estimate is worth


def window_s(past: state.ScalerState, parameters: observation.Parameters) -> float:
    """W before it is cut to the time since traffic began."""
    service_s = past.service_s or parameters.service_s
    return min(max(service_s, WINDOW_LEAST_S, parameters.snapshot_s), WINDOW_MOST_S)


def advance(
    past: state.ScalerState,
    seen: observation.Observation,
    parameters: observation.Parameters,
    now: demand.Demand,
    now_s: float,
) -> state.ScalerState:
    """Take in what the gateways counted since the last decision."""
    span_s = window_s(past, parameters)
    slices = _slices(past, max(0, seen.signal.arrivals), parameters.snapshot_s, span_s, now_s)
    busy = now.total > 0 or seen.signal.arrivals > 0 or seen.signal.completions > 0 or seen.wake
    began_s = past.traffic_since_s
    if slices and began_s is None:
        began_s = slices[0][0]
    elif not slices and not busy:
        began_s = None
    service_s, samples = _service(past, seen.signal, parameters)
    return dataclasses.replace(
        past,
        arrivals=slices,
        traffic_since_s=began_s,
        last_active_s=now_s if busy or past.last_active_s is None else past.last_active_s,
        service_s=service_s,
        service_samples=samples,
    )


def _slices(
    past: state.ScalerState, arrivals: int, snapshot_s: float, span_s: float, now_s: float
) -> tuple[tuple[float, float, int], ...]:
    slices = past.arrivals
    cutoff_s = now_s - snapshot_s - span_s
    if slices and slices[0][1] <= cutoff_s:
        slices = tuple(s for s in slices if s[1] > cutoff_s)
    if not arrivals:
        return slices
    from_s = max(slices[-1][1], now_s - snapshot_s) if slices else now_s - snapshot_s
    if slices:
        first_s, last_s, count = slices[-1]
        if last_s == from_s and now_s - first_s <= span_s / SLICES:
            return (*slices[:-1], (first_s, now_s, count + arrivals))
    return (*slices, (from_s, now_s, arrivals))


def _service(
    past: state.ScalerState, signal: observation.GatewaySignal, parameters: observation.Parameters
) -> tuple[float | None, int]:
    count, total_s = signal.completions, signal.service_sum_s
    if count <= 0 or not math.isfinite(total_s) or total_s < 0:
        return past.service_s, past.service_samples
    known_s = past.service_s or parameters.service_s
    weight = max(SMOOTHING, 1 / (past.service_samples + PRIOR_WEIGHT + 1))
    share = 1 - (1 - weight) ** count
    return max(1e-3, known_s + (total_s / count - known_s) * share), past.service_samples + count


def arrival_rate_per_s(
    past: state.ScalerState, parameters: observation.Parameters, now_s: float
) -> float:
    """λ in requests per emulated second."""
    if not past.arrivals:
        return 0.0
    # What came since may not have been told yet: silence is only known up to here.
    told_s = max(past.arrivals[-1][1], now_s - parameters.snapshot_s)
    span_s = window_s(past, parameters)
    began_s = past.traffic_since_s
    if began_s is not None:
        span_s = min(span_s, max(WINDOW_LEAST_S, told_s - began_s))
    cutoff_s = told_s - span_s
    arrived = 0.0
    for from_s, to_s, count in past.arrivals:
        if from_s >= cutoff_s:
            arrived += count
        elif to_s > cutoff_s:
            arrived += count * (to_s - cutoff_s) / (to_s - from_s)
    return max(0.0, arrived - 1) / span_s
