"""What stands between a recommendation and the count: windows, rates, bounds, caution, zero, GPUs.

Each limit takes the verdict so far and returns it, moved and with its own reason if it had to.
"""

from modelserve.decide import demand, observation, situation, state, victims, windows, wording
from modelserve.decide.record import Reason
from modelserve.decide.verdict import Verdict


def know(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Shrink only with fresh figures from every ready replica and the gateways."""
    if verdict.replicas >= view.current or not view.demand.missing:
        return verdict
    return verdict.moved(
        view.current,
        Reason.NO_SIGNAL,
        lambda: f"no figures from {names(view.demand)}: no shrink",
    )


def stabilize(verdict: Verdict, view: situation.Situation, past: state.ScalerState) -> Verdict:
    """Move no further than the windows' recommendations agree on; a wake is not held back."""
    up, down, now_s = view.parameters.up, view.parameters.down, view.now_s
    low = windows.least(verdict.replicas, past.growth, now_s, up.window_s)
    high = windows.greatest(verdict.replicas, past.recommendations, now_s, down.window_s)
    count = min(max(view.current, low), high)
    if view.current == 0:
        count = max(count, min(verdict.replicas, view.parameters.activation_replicas))
    if count == verdict.replicas:
        return verdict
    if count > verdict.replicas:
        at_s = windows.next_expiry_s(past.recommendations, count - 1, down.window_s)
        return verdict.moved(
            count,
            Reason.STABILIZING_DOWN,
            lambda: (
                f"a count of {count} was wanted within the last {wording.seconds(down.window_s)}"
            ),
            at_s,
        )
    return verdict.moved(
        count,
        Reason.RATE_LIMITED,
        lambda: f"{verdict.replicas} not wanted for all of {wording.seconds(up.window_s)} yet",
        now_s + up.window_s,
    )


def rate(verdict: Verdict, view: situation.Situation, past: state.ScalerState) -> Verdict:
    """Change no faster than the rate policies allow; activation passes."""
    current, now_s = view.current, view.now_s
    if verdict.replicas > current:
        direction = view.parameters.up
        allowed = windows.limit_up(current, past.steps, direction, now_s)
        if current == 0:
            allowed = max(allowed, view.parameters.activation_replicas)
        count = min(verdict.replicas, allowed)
    elif verdict.replicas < current:
        direction = view.parameters.down
        count = max(verdict.replicas, windows.limit_down(current, past.steps, direction, now_s))
    else:
        return verdict
    if count == verdict.replicas:
        return verdict
    at_s = windows.next_rate_s(past.steps, direction, now_s)
    return verdict.moved(
        count, Reason.RATE_LIMITED, lambda: f"the rate policies allow {count} now", at_s
    )


def bound(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Stay within minReplicas and maxReplicas, windows and rates or not."""
    parameters = view.parameters
    if verdict.replicas > parameters.max_replicas:
        return verdict.moved(parameters.max_replicas, Reason.AT_MAXIMUM, _maximum)
    if verdict.replicas < parameters.min_replicas:
        return verdict.moved(parameters.min_replicas, Reason.AT_MINIMUM, _minimum)
    return verdict


def _maximum() -> str:
    return "maxReplicas"


def _minimum() -> str:
    return "minReplicas"


def shrink_safely(
    verdict: Verdict,
    view: situation.Situation,
    seen: observation.Observation,
    past: state.ScalerState,
) -> Verdict:
    """Shrink only on full knowledge, not just after a restart, and only what will be idle."""
    if view.demand.missing:
        return know(verdict, view)
    now, parameters, current = view.demand, view.parameters, view.current
    if past.restored_at_s is not None:
        until_s = past.restored_at_s + parameters.down.window_s
        if view.now_s < until_s:
            return verdict.moved(current, Reason.STABILIZING_DOWN, _restarted, until_s)
    if view.supply.admitted:
        return verdict.moved(current, Reason.STABILIZING_DOWN, _admitted)
    free = max(0, seen.live_count - view.supply.pods)
    if free < current - verdict.replicas:
        free += victims.removable(
            seen.replicas,
            now.loads,
            slots=parameters.slots,
            service_s=view.service_s,
            drain_s=parameters.drain_s,
            enough=current - verdict.replicas - free,
        )
    if verdict.replicas >= current - free:
        return verdict
    return verdict.moved(
        current - free,
        Reason.STABILIZING_DOWN,
        lambda: f"only {free} expected to be idle within {wording.seconds(parameters.drain_s)}",
    )


def _restarted() -> str:
    return "nothing shrinks for one down window after an operator start"


def _admitted() -> str:
    return "a replica serves that Kubernetes does not call ready yet, and would be killed first"


def toward_zero(
    verdict: Verdict,
    view: situation.Situation,
    seen: observation.Observation,
    past: state.ScalerState,
) -> Verdict:
    """The last replica stays until the cooldown is over, the roll-out done, the fence granted."""
    if verdict.replicas > 0 or view.current == 0:
        return verdict
    if view.demand.total > 0:
        return verdict.moved(1, Reason.STEADY_LOAD, lambda: "requests are open")
    active_s = past.known.last_active_s
    since_s = view.now_s if active_s is None else active_s
    cooldown_s, quiet_s = view.parameters.cooldown_s, view.now_s - since_s
    if quiet_s < cooldown_s:

        def cooling() -> str:
            return f"quiet for {wording.seconds(quiet_s)} of {wording.seconds(cooldown_s)} cooldown"

        return verdict.moved(1, Reason.COOLDOWN, cooling, since_s + cooldown_s)
    if seen.rollout_in_progress:
        return verdict.moved(1, Reason.COOLDOWN, lambda: "a roll-out is in progress")
    if seen.fence_retry_s is not None and view.now_s < seen.fence_retry_s:
        why = "a gateway did not grant the fence"
        return verdict.moved(1, Reason.FENCE_REFUSED, lambda: why, seen.fence_retry_s)

    def cooled() -> str:
        quiet, cooldown = wording.seconds(quiet_s), wording.seconds(cooldown_s)
        return f"quiet for {quiet}, past the cooldown of {cooldown}"

    return verdict._replace(reason=Reason.COOLDOWN, why=(cooled,))


def fit(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Leave at most one replica without GPUs where no pool can grow; say how many lack them."""
    gpus, have = view.parameters.gpus, view.supply
    if gpus.can_grow or (gpus.replicas is None and not have.unplaced):
        return _lacking(verdict, len(have.unplaced))
    placeable = have.bound + (gpus.replicas or 0)
    missing = verdict.replicas - placeable
    # Pods the scheduler has not had its time with are not given up yet.
    most = max(placeable + 1, view.current - max(0, len(have.unplaced) - 1))
    if missing <= 0 or verdict.replicas <= most:
        return _lacking(verdict, max(0, min(missing, len(have.unplaced))))

    def short() -> str:
        enough = wording.replicas(placeable)
        return f"the GPUs are enough for {enough}, {missing} short, one left pending"

    return verdict.moved(most, Reason.INSUFFICIENT_GPU, short, missing=missing)


def _lacking(verdict: Verdict, missing: int) -> Verdict:
    """The count stands, but some of it has no GPUs."""
    if not missing:
        return verdict
    return verdict.adding(
        lambda: f"{wording.replicas(missing)} without GPUs",
        limits=(*verdict.limits, Reason.INSUFFICIENT_GPU),
        missing_replicas=missing,
    )


def names(now: demand.Demand) -> str:
    """What gives no figures, at most three by name."""
    more = f" and {len(now.missing) - 3} more" if len(now.missing) > 3 else ""
    return ", ".join(now.missing[:3]) + more
