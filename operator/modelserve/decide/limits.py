"""What stands between a recommendation and the count: windows, rates, bounds, caution, zero, GPUs.

Each limit takes the verdict so far and returns it, moved and with its own reason if it had to.
"""

import dataclasses
from dataclasses import dataclass

from modelserve.decide import (
    demand,
    observation,
    record,
    situation,
    state,
    victims,
    windows,
    wording,
)

Reason = record.Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """A count on its way from the policy to the decision."""

    count: int
    reason: Reason
    why: str
    limits: tuple[Reason, ...] = ()
    at_s: float | None = None  # when the limit that counts may give way
    missing_replicas: int = 0

    def moved(
        self, count: int, reason: Reason, why: str, at_s: float | None = None, missing: int = 0
    ) -> "Verdict":
        """The verdict under one more limit."""
        limits, missing = (*self.limits, reason), missing or self.missing_replicas
        return Verdict(count, reason, f"{self.why}; {why}", limits, at_s, missing)


def know(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Shrink only with fresh figures from every ready replica and the gateways."""
    if verdict.count >= view.current or view.demand.complete:
        return verdict
    why = f"no figures from {names(view.demand)}: no shrink"
    return verdict.moved(view.current, Reason.NO_SIGNAL, why)


def stabilize(verdict: Verdict, view: situation.Situation, past: state.ScalerState) -> Verdict:
    """Move no further than the windows' recommendations agree on; a wake is not held back."""
    up, down, now_s = view.parameters.up, view.parameters.down, view.now_s
    count = windows.stabilize(
        view.current,
        verdict.count,
        past.recommendations,
        now_s,
        up_window_s=up.window_s,
        down_window_s=down.window_s,
    )
    if view.current == 0:
        count = max(count, min(verdict.count, view.parameters.activation_replicas))
    if count == verdict.count:
        return verdict
    if count > verdict.count:
        at_s = windows.next_expiry_s(past.recommendations, count - 1, down.window_s)
        why = f"a count of {count} was wanted within the last {wording.seconds(down.window_s)}"
        return verdict.moved(count, Reason.STABILIZING_DOWN, why, at_s)
    why = f"{verdict.count} not wanted for all of {wording.seconds(up.window_s)} yet"
    return verdict.moved(count, Reason.RATE_LIMITED, why, now_s + up.window_s)


def rate(verdict: Verdict, view: situation.Situation, past: state.ScalerState) -> Verdict:
    """Change no faster than the rate policies allow; activation passes."""
    current, now_s = view.current, view.now_s
    if verdict.count > current:
        direction = view.parameters.up
        allowed = windows.limit_up(current, past.steps, direction, now_s)
        if current == 0:
            allowed = max(allowed, view.parameters.activation_replicas)
        count = min(verdict.count, allowed)
    elif verdict.count < current:
        direction = view.parameters.down
        count = max(verdict.count, windows.limit_down(current, past.steps, direction, now_s))
    else:
        return verdict
    if count == verdict.count:
        return verdict
    at_s = windows.next_rate_s(past.steps, direction, now_s)
    why = f"the rate policies allow {count} now"
    return verdict.moved(count, Reason.RATE_LIMITED, why, at_s)


def bound(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Stay within minReplicas and maxReplicas, windows and rates or not."""
    parameters = view.parameters
    if verdict.count > parameters.max_replicas:
        return verdict.moved(parameters.max_replicas, Reason.AT_MAXIMUM, "maxReplicas")
    if verdict.count < parameters.min_replicas:
        return verdict.moved(parameters.min_replicas, Reason.AT_MINIMUM, "minReplicas")
    return verdict


def shrink_safely(
    verdict: Verdict,
    view: situation.Situation,
    seen: observation.Observation,
    past: state.ScalerState,
) -> Verdict:
    """Shrink only on full knowledge, not just after a restart, and only what will be idle."""
    verdict = know(verdict, view)
    if verdict.count >= view.current:
        return verdict
    now, parameters, current = view.demand, view.parameters, view.current
    if past.restored_at_s is not None:
        until_s = past.restored_at_s + parameters.down.window_s
        if view.now_s < until_s:
            why = "nothing shrinks for one down window after an operator start"
            return verdict.moved(current, Reason.STABILIZING_DOWN, why, until_s)
    if view.supply.admitted:
        why = "a replica serves that Kubernetes does not call ready yet, and would be killed first"
        return verdict.moved(current, Reason.STABILIZING_DOWN, why)
    free = victims.removable(
        seen.replicas,
        now.loads,
        slots=parameters.slots,
        service_s=view.service_s,
        drain_s=parameters.drain_s,
    )
    free += max(0, seen.live_count - view.supply.pods)
    if verdict.count >= current - free:
        return verdict
    why = f"only {free} expected to be idle within {wording.seconds(parameters.drain_s)}"
    return verdict.moved(current - free, Reason.STABILIZING_DOWN, why)


def toward_zero(
    verdict: Verdict,
    view: situation.Situation,
    seen: observation.Observation,
    past: state.ScalerState,
) -> Verdict:
    """The last replica stays until the cooldown is over, the roll-out done, the fence granted."""
    if verdict.count > 0 or view.current == 0:
        return verdict
    if view.demand.total > 0:
        return verdict.moved(1, Reason.STEADY_LOAD, "requests are open")
    since_s = view.now_s if past.last_active_s is None else past.last_active_s
    until_s = since_s + view.parameters.cooldown_s
    if view.now_s < until_s:
        quiet_s = wording.seconds(view.now_s - since_s)
        why = f"quiet for {quiet_s} of {wording.seconds(view.parameters.cooldown_s)} cooldown"
        return verdict.moved(1, Reason.COOLDOWN, why, until_s)
    if seen.rollout_in_progress:
        return verdict.moved(1, Reason.COOLDOWN, "a roll-out is in progress")
    if seen.fence_retry_s is not None and view.now_s < seen.fence_retry_s:
        why = "a gateway did not grant the fence"
        return verdict.moved(1, Reason.FENCE_REFUSED, why, seen.fence_retry_s)
    quiet_s = wording.seconds(view.now_s - since_s)
    why = f"quiet for {quiet_s}, past the cooldown of {wording.seconds(view.parameters.cooldown_s)}"
    return dataclasses.replace(verdict, reason=Reason.COOLDOWN, why=why)


def fit(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Leave at most one replica without GPUs where no pool can grow; say how many lack them."""
    gpus, have = view.parameters.gpus, view.supply
    if gpus.can_grow or (gpus.replicas is None and not have.unplaced):
        return _lacking(verdict, len(have.unplaced))
    placeable = have.bound + (gpus.replicas or 0)
    missing = verdict.count - placeable
    # Pods the scheduler has not had its time with are not given up yet.
    most = max(placeable + 1, view.current - max(0, len(have.unplaced) - 1))
    if missing <= 0 or verdict.count <= most:
        return _lacking(verdict, max(0, min(missing, len(have.unplaced))))
    why = (
        f"the GPUs are enough for {wording.replicas(placeable)}, {missing} short, one left pending"
    )
    return verdict.moved(most, Reason.INSUFFICIENT_GPU, why, missing=missing)


def _lacking(verdict: Verdict, missing: int) -> Verdict:
    """The count stands, but some of it has no GPUs."""
    if not missing:
        return verdict
    limits = (*verdict.limits, Reason.INSUFFICIENT_GPU)
    why = f"{verdict.why}; {wording.replicas(missing)} without GPUs"
    return dataclasses.replace(verdict, why=why, limits=limits, missing_replicas=missing)


def names(now: demand.Demand) -> str:
    """What gives no figures, at most three by name."""
    more = f" and {len(now.missing) - 3} more" if len(now.missing) > 3 else ""
    return ", ".join(now.missing[:3]) + more
