"""When what happens next: the next shrink, the next look, the wait of a request that comes now."""

from modelserve.api import spec as api
from modelserve.decide import (
    claims,
    forecast,
    limits,
    observation,
    repair,
    situation,
    state,
    traffic,
    windows,
)


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
    view: situation.Situation, verdict: limits.Verdict, wanted: int, past: state.ScalerState
) -> float | None:
    """When the next shrink may happen if demand stays as it is; None if none is in sight."""
    parameters, current, now_s = view.parameters, view.current, view.now_s
    if verdict.count < current:
        return now_s
    lowest = max(wanted, parameters.min_replicas)
    if lowest >= current or parameters.mode in (api.Mode.MANUAL, api.Mode.SCALE_UP_ONLY):
        return None
    window_s = parameters.down.window_s
    at_s = windows.next_expiry_s(past.recommendations, current - 1, window_s) or now_s
    if past.restored_at_s is not None:
        at_s = max(at_s, past.restored_at_s + window_s)
    if current == 1 and past.last_active_s is not None:
        at_s = max(at_s, past.last_active_s + parameters.cooldown_s)
    return max(at_s, verdict.at_s or at_s)


def revisit_s(
    seen: observation.Observation,
    view: situation.Situation,
    verdict: limits.Verdict,
    claim: claims.Claim,
    past: state.ScalerState,
) -> float | None:
    """The next instant at which time alone may change the answer; None for a model at rest."""
    parameters, now_s = view.parameters, view.now_s
    instants = [
        verdict.at_s,
        claim.force_at_s,
        view.supply.next_ready_s,
        view.supply.next_change_s,
        seen.awake_until_s,
        seen.fence_retry_s,
    ]
    if view.supply.broken:
        instants.append(repair.next_deletion_s(past))
    if view.demand.total > 0 or view.arrival_rate_per_s > 0:
        step_s = max(parameters.snapshot_s, traffic.window_s(past, parameters) / 10)
        instants.append(now_s + step_s)
    elif view.current > parameters.min_replicas and parameters.mode is not api.Mode.MANUAL:
        instants.append(scale_down_s(view, verdict, min(verdict.count, view.current - 1), past))
        if past.last_active_s is not None:
            quiet_s = parameters.cooldown_s - parameters.down.window_s
            instants.append(past.last_active_s + quiet_s)
            instants.append(past.last_active_s + parameters.cooldown_s)
    later = [at_s for at_s in instants if at_s is not None and at_s > now_s]
    return min(later, default=None)
