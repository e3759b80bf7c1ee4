"""When what happens next: the next shrink, the next look, the wait of a request that comes now."""

from modelserve.api import spec as api
from modelserve.decide import (
    claims,
    forecast,
    observation,
    progress,
    repair,
    situation,
    state,
    traffic,
    windows,
)
from modelserve.decide.verdict import Verdict

# Looked up once: an enum's class is slow to find a member.
MANUAL = api.Mode.MANUAL


def wait_s(view: situation.Situation, ordered: int) -> float:
    """What a request that comes now waits; with nothing on its way, one cold start."""
    now, ready = view.demand, view.supply.ready
    ahead = now.total - now.refused - ready * view.parameters.slots
    if ahead < 0:
        return 0.0
    if not ready and not ordered and not view.supply.starting_s:
        return view.parameters.cold_start_s
    expected_s = forecast.wait_s(view.fluid(ordered), ahead)
    return view.parameters.cold_start_s if expected_s is None else expected_s


def scale_down_s(
    view: situation.Situation, verdict: Verdict, wanted: int, past: state.ScalerState
) -> float | None:
    """When the next shrink may happen if demand stays as it is; None if none is in sight."""
    parameters, current, now_s = view.parameters, view.current, view.now_s
    if verdict.replicas < current:
        return now_s
    lowest = max(wanted, parameters.min_replicas)
    if lowest >= current or parameters.mode in (api.Mode.MANUAL, api.Mode.SCALE_UP_ONLY):
        return None
    window_s = parameters.down.window_s
    at_s = windows.next_expiry_s(past.recommendations, current - 1, window_s) or now_s
    if past.restored_at_s is not None:
        at_s = max(at_s, past.restored_at_s + window_s)
    active_s = past.known.last_active_s
    if current == 1 and active_s is not None:
        at_s = max(at_s, active_s + parameters.cooldown_s)
    return max(at_s, verdict.at_s or at_s)


def revisit_s(
    seen: observation.Observation,
    view: situation.Situation,
    verdict: Verdict,
    wanted: int,
    claim: claims.Claim,
    past: state.ScalerState,
) -> float | None:
    """The next instant at which time alone may change the answer; None for a model at rest.

    While there is traffic the answer changes all the time: a tenth of λ's window is soon enough.
    """
    instants = _traffic_s(view, verdict, wanted, past)
    instants += (verdict.look_s, claim.force_at_s, seen.awake_until_s, seen.fence_retry_s)
    instants.append(view.demand.failing_at_s)
    if view.supply.starting_s:
        instants.append(view.supply.starting_s[0])
    if view.supply.next_change_s is not None:
        instants.append(view.supply.next_change_s)
    if past.watch.since_s is not None:
        instants.append(progress.due_s(past.watch, view))
    if view.supply.broken:
        instants.append(repair.next_deletion_s(past.deleted))
    now_s = view.now_s
    soonest_s: float | None = None
    for at_s in instants:
        if at_s is not None and at_s > now_s and (soonest_s is None or at_s < soonest_s):
            soonest_s = at_s
    return soonest_s


def _traffic_s(
    view: situation.Situation, verdict: Verdict, wanted: int, past: state.ScalerState
) -> list[float | None]:
    """When traffic that goes on, fades or stays away may change the answer."""
    parameters, known, now_s = view.parameters, past.known, view.now_s
    manual = parameters.mode is MANUAL
    instants: list[float | None] = []
    # One replica stays until the cooldown is over: a rate that fades is no reason to look.
    resting = view.demand.total <= 0 and verdict.replicas == view.current == 1 >= wanted
    if view.active and not manual:
        begins = known.arrived > known.bursts.total
        if begins or (view.expected_rate_per_s > 0 and not resting):
            instants.append(known.bursts.next_s)
    if view.arrival_rate_per_s > 0 and resting:
        instants.append(max(traffic.rate_over_s(known, parameters), now_s + parameters.snapshot_s))
    elif view.demand.total > 0 or view.arrival_rate_per_s > 0:
        instants.append(now_s + max(parameters.snapshot_s, view.window_s / 10))
    elif not manual:
        if view.current > parameters.min_replicas:
            lower = min(verdict.replicas, view.current - 1)
            instants.append(scale_down_s(view, verdict, lower, past))
        if view.current > 0 and known.last_active_s is not None:
            spare_for_s = parameters.cooldown_s - parameters.down.window_s
            instants.append(known.last_active_s + spare_for_s)
            instants.append(known.last_active_s + parameters.cooldown_s)
    return instants
