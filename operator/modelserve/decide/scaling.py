"""The autoscaler's decision for one model: (observation, parameters, state, now) to a decision.

Pure and cheap, so it may run on every change of a signal. The order of the rules is the HPA's:
recommend, stabilize, rate-limit, bound; then caution, cooldown, GPUs, mode and who else writes.
"""

import dataclasses
from collections.abc import Callable

from modelserve.api import spec as api
from modelserve.decide import (
    claims,
    committed,
    demand,
    limits,
    observation,
    queuedepth,
    record,
    repair,
    schedule,
    situation,
    state,
    supply,
    traffic,
    victims,
    windows,
    wording,
)

Observation = observation.Observation
Parameters = observation.Parameters
Decision = record.Decision
Reason = record.Reason
ScalerState = state.ScalerState
Situation = situation.Situation
Verdict = limits.Verdict

POLICIES: dict[api.Policy, Callable[[Situation], situation.Recommendation]] = {
    api.Policy.COMMITTED: committed.recommend,
    api.Policy.QUEUE_DEPTH: queuedepth.recommend,
}


def decide(
    seen: Observation, parameters: Parameters, past: ScalerState, now_s: float
) -> tuple[Decision, ScalerState]:
    """Decide how many replicas there should be at ``now_s`` (emulated monotonic seconds).

    Raises nothing: odd figures are no signal. ``past`` is the state the last decision returned, or
    ``state.from_status``'s.
    """
    now = demand.measure(seen, parameters, now_s)
    have = supply.classify(seen, parameters, now_s)
    inputs: dict[str, float] = {}
    past = traffic.advance(_counted(past, seen, parameters, now_s), seen, parameters, now, now_s)
    view = _look(seen, parameters, now, have, past, now_s)
    if parameters.mode is api.Mode.MANUAL:
        why = f"mode Manual: spec.replicas is {parameters.manual_replicas}"
        wanted = count = parameters.manual_replicas
        verdict = Verdict(count, Reason.MANUAL, why)
    elif not now.signal:
        wanted = seen.live_count
        why = "no figures from gateways or engines: the count is held"
        verdict = Verdict(wanted, Reason.NO_SIGNAL, why, (Reason.NO_SIGNAL,))
        verdict = _floored(verdict, seen, view)
        verdict = limits.bound(verdict, view) if wanted < parameters.min_replicas else verdict
    else:
        verdict, wanted, inputs, past = _automatic(seen, view, past)
    claim = claims.Claim()
    if parameters.mode is api.Mode.DRY_RUN:
        why = f"mode DryRun: it would be {verdict.count}"
        verdict = verdict.moved(view.current, Reason.DRY_RUN, why)
    else:
        claim, past = claims.advance(past, seen, parameters, now_s)
    deletions, past = repair.deletions(view, past)
    return _conclude(seen, view, verdict, wanted, inputs, claim, deletions, past)


def _look(
    seen: Observation,
    parameters: Parameters,
    now: demand.Demand,
    have: supply.Supply,
    past: ScalerState,
    now_s: float,
) -> Situation:
    rate_per_s = traffic.arrival_rate_per_s(past, parameters, now_s)
    quiet_s = 0.0 if past.last_active_s is None else now_s - past.last_active_s
    # Spare replicas leave by the down window, which is to end with the cooldown, not after it.
    spare_for_s = parameters.cooldown_s - parameters.down.window_s
    return Situation(
        parameters=parameters,
        demand=now,
        supply=have,
        arrival_rate_per_s=rate_per_s,
        service_s=past.service_s or parameters.service_s,
        current=seen.live_count,
        active=now.total > 0 or rate_per_s > 0 or quiet_s < spare_for_s,
        now_s=now_s,
    )


def _counted(
    past: ScalerState, seen: Observation, parameters: Parameters, now_s: float
) -> ScalerState:
    """Note a change of the live count as a step, at the time it was asked for if we asked."""
    before = past.live_count
    if before is None or before == seen.live_count:
        return past if before is not None else dataclasses.replace(past, live_count=seen.live_count)
    at_s = past.asked_at_s if past.asked_count == seen.live_count else now_s
    keep_s = max((r.period_s for r in (*parameters.up.rates, *parameters.down.rates)), default=0.0)
    steps = tuple(s for s in past.steps if s.at_s > now_s - keep_s)
    step = windows.Step(at_s, seen.live_count - before)
    return dataclasses.replace(past, live_count=seen.live_count, steps=(*steps, step))


def _automatic(
    seen: Observation, view: Situation, past: ScalerState
) -> tuple[Verdict, int, dict[str, float], ScalerState]:
    """Recommend, remember, limit."""
    parameters, now_s = view.parameters, view.now_s
    advice = POLICIES[parameters.policy](view)
    verdict = _floored(Verdict(advice.count, advice.reason, advice.why), seen, view)
    verdict = repair.replace_late(verdict, view)
    wanted, asked = verdict.count, verdict.reason
    verdict = limits.know(verdict, view)
    past = dataclasses.replace(
        past,
        recommendations=windows.record_held(
            # As in the HPA, the count found at first is the first recommendation.
            past.recommendations or (windows.Recommended(now_s, view.current),),
            verdict.count,
            now_s,
            max(parameters.up.window_s, parameters.down.window_s),
        ),
    )
    verdict = limits.stabilize(verdict, view, past)
    verdict = limits.rate(verdict, view, past)
    verdict = limits.bound(verdict, view)
    verdict = limits.shrink_safely(verdict, view, seen, past)
    verdict = limits.toward_zero(verdict, view, seen, past)
    verdict = limits.fit(verdict, view)
    if (verdict.count - view.current) * (wanted - view.current) > 0 and verdict.count > 0:
        # It does move the way the policy wants: its reason stands, what slowed it is a limit.
        verdict = dataclasses.replace(verdict, reason=asked)
    if verdict.count < view.current and parameters.mode is api.Mode.SCALE_UP_ONLY:
        verdict = verdict.moved(view.current, verdict.reason, "mode ScaleUpOnly: no shrink")
    return verdict, wanted, dict(advice.inputs), past


def _floored(verdict: Verdict, seen: Observation, view: Situation) -> Verdict:
    """Anything held, a wake by hand, and any open request ask for at least some replicas."""
    parameters = view.parameters
    awake = seen.awake_until_s is not None and view.now_s < seen.awake_until_s
    if view.demand.held > 0 or view.demand.refused > 0 or seen.wake or awake:
        least = parameters.activation_replicas
    else:
        least = 1 if view.demand.total > 0 else 0
    count = max(verdict.count, least)
    if view.current == 0 and count > 0:
        cold_start = wording.seconds(parameters.cold_start_s)
        by_hand = "woken by hand, " if seen.wake or awake else ""
        why = f"{by_hand}nothing runs and nothing starts, the first is there in {cold_start}"
        return dataclasses.replace(verdict, count=count, reason=Reason.ACTIVATION, why=why)
    if count == verdict.count:
        return verdict
    why = f"{verdict.why}; at least {least} while awake"
    return dataclasses.replace(verdict, count=count, why=why)


def _conclude(
    seen: Observation,
    view: Situation,
    verdict: Verdict,
    wanted: int,
    inputs: dict[str, float],
    claim: claims.Claim,
    deletions: tuple[str, ...],
    past: ScalerState,
) -> tuple[Decision, ScalerState]:
    """Put the record together, and remember what was asked for."""
    now, have, parameters, now_s = view.demand, view.supply, view.parameters, view.now_s
    current, count, reason = view.current, verdict.count, verdict.reason
    left_alone = claim.foreign and not claim.force
    demanded = wording.demanded(now, view.arrival_rate_per_s, view.service_s)
    message = f"{demanded}: {verdict.why}, {wording.step(current, count)}"
    if left_alone:
        whose = f"somebody else set {current}, we {seen.written_count}: left alone for now"
        message = f"{whose}; {demanded}: {verdict.why}, so {count} would be right"
    plan = victims.plan(seen.replicas, have.stuck, now.loads, current - count)
    next_ready_s = have.next_ready_s
    if next_ready_s is None and count > current:
        next_ready_s = now_s + parameters.cold_start_s
    decision = Decision(
        desired=count,
        current=current,
        reason=Reason.CONFLICT if left_alone else reason,
        message=message,
        inputs=inputs | _inputs(view, wanted),
        limits=(*verdict.limits, Reason.CONFLICT) if claim.foreign else verdict.limits,
        unlimited=wanted,
        revisit_at_s=schedule.revisit_s(seen, view, verdict, claim, past),
        wants_zero=count == 0 < current and reason is not Reason.MANUAL,
        write=not left_alone,
        force=claim.force,
        conflict=claim.foreign,
        signal_ok=not now.failing,
        signal_missing=now.failing,
        active=now.total > 0 or view.arrival_rate_per_s > 0,
        next_ready_at_s=next_ready_s,
        scale_down_at_s=schedule.scale_down_s(view, verdict, wanted, past),
        wait_s=schedule.wait_s(view, count - current),
        arrival_rate_per_s=view.arrival_rate_per_s,
        service_s=view.service_s,
        missing_gpu_replicas=verdict.missing_replicas,
        delete_uids=deletions,
        stuck_uids=have.stuck,
        victims=plan.uids,
        deletion_costs=plan.costs,
    )
    if past.asked_count != count:
        past = dataclasses.replace(past, asked_count=count, asked_at_s=now_s)
    return decision, past


def _inputs(view: Situation, wanted: int) -> dict[str, float]:
    now, have = view.demand, view.supply
    return {
        "demand": now.total,
        "held": float(now.held),
        "refused": float(now.refused),
        "waiting": now.waiting,
        "running": now.running,
        "arrival_rate_per_s": view.arrival_rate_per_s,
        "service_s": view.service_s,
        "cold_start_s": view.parameters.cold_start_s,
        "slots": float(view.parameters.slots),
        "live_count": float(view.current),
        "ready": float(have.ready),
        "starting": float(len(have.starting_s)),
        "stuck": float(len(have.stuck)),
        "wanted": float(wanted),
    }
