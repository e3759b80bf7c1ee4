"""The autoscaler's decision for one model: (observation, parameters, state, now) to a decision.

Pure and cheap, so it may run on every change of a signal. The order of the rules is the HPA's:
recommend, stabilize, rate-limit, bound; then caution, cooldown, GPUs, mode and who else writes.
"""

from collections.abc import Mapping

from modelserve.api import spec as api
from modelserve.decide import (
    claims,
    committed,
    demand,
    limits,
    observation,
    progress,
    queuedepth,
    record,
    repair,
    schedule,
    situation,
    state,
    supply,
    telling,
    traffic,
    windows,
    wording,
)
from modelserve.decide.verdict import Verdict

Observation = observation.Observation
Parameters = observation.Parameters
Decision = record.Decision
Reason = record.Reason
ScalerState = state.ScalerState
Situation = situation.Situation

# Looked up once: an enum's class is slow to find a member.
COMMITTED = api.Policy.COMMITTED
MANUAL, DRY_RUN, UP_ONLY = api.Mode.MANUAL, api.Mode.DRY_RUN, api.Mode.SCALE_UP_ONLY


def decide(
    seen: Observation, parameters: Parameters, past: ScalerState, now_s: float
) -> tuple[Decision, ScalerState]:
    """Decide how many replicas there should be at ``now_s`` (emulated monotonic seconds).

    Raises nothing: odd figures are no signal. ``past`` is the state the last decision returned, or
    ``state.from_status``'s.
    """
    now = demand.measure(seen, parameters, now_s)
    have = supply.classify(seen, parameters, now_s)
    inputs: Mapping[str, float] = {}
    known = traffic.advance(past.known, seen, parameters, now, now_s, past.restored_at_s)
    past = state.counted(past, seen, parameters, now_s)
    view = _look(seen, parameters, now, have, known, past, now_s)
    if parameters.mode is MANUAL:
        wanted = parameters.manual_replicas
        verdict = Verdict(wanted, Reason.MANUAL, (lambda: _by_hand(parameters),))
        past = past._replace(known=known, piled=view.piled)
    elif not now.signal:
        verdict, past = _blind(seen, view, past._replace(known=known))
        wanted = verdict.replicas
    else:
        verdict, wanted, inputs, past = _automatic(seen, view, known, past)
    claim = claims.OURS
    if parameters.mode is DRY_RUN:
        count = verdict.replicas
        verdict = verdict.moved(
            view.current, Reason.DRY_RUN, lambda: f"mode DryRun: it would be {count}"
        )
    else:
        claim, foreign = claims.advance(past.foreign, seen, parameters, now_s)
        if foreign is not past.foreign:
            past = past._replace(foreign=foreign)
    deletions: tuple[str, ...] = ()
    if have.broken or past.deleted.times:
        deletions, deleted = repair.deletions(view, past.deleted)
        past = past._replace(deleted=deleted)
    return _conclude(seen, view, verdict, wanted, inputs, claim, deletions, past)


def _by_hand(parameters: Parameters) -> str:
    return f"mode Manual: spec.replicas is {parameters.manual_replicas}"


def _blind(seen: Observation, view: Situation, past: ScalerState) -> tuple[Verdict, ScalerState]:
    """No figures at all: hold; after a while, no fewer than fallbackReplicas."""
    parameters, current, now_s = view.parameters, view.current, view.now_s
    since_s = now_s if past.silent_since_s is None else past.silent_since_s
    past = past._replace(silent_since_s=since_s)
    fallback = parameters.fallback_replicas
    verdict = Verdict(current, Reason.NO_SIGNAL, (_unknown,), (Reason.NO_SIGNAL,))
    if fallback is not None and fallback > current:
        after_s = since_s + parameters.fallback_after_s
        if now_s < after_s:
            verdict = verdict.until(after_s)
        else:
            verdict = verdict.moved(
                fallback, Reason.FALLBACK, lambda: f"fallbackReplicas is {fallback}"
            )
            verdict = limits.fit(limits.bound(verdict, view), view)
    verdict = _floored(verdict, _least(seen, view), seen, view)
    return limits.bound(
        verdict, view
    ) if verdict.replicas < parameters.min_replicas else verdict, past


def _unknown() -> str:
    return "no figures from gateways or engines: the count is held"


def _look(
    seen: Observation,
    parameters: Parameters,
    now: demand.Demand,
    have: supply.Supply,
    known: traffic.Traffic,
    past: ScalerState,
    now_s: float,
) -> Situation:
    window_s = traffic.window_s(known, parameters)
    rate_per_s = traffic.arrival_rate_per_s(known, parameters, now_s, window_s)
    quiet_s = 0.0 if known.last_active_s is None else now_s - known.last_active_s
    # Spare replicas leave by the down window, which is to end with the cooldown, not after it.
    spare_for_s = parameters.cooldown_s - parameters.down.window_s
    service_s = known.service_s or parameters.service_s
    # At zero, what came and went without waiting is no reason for a replica.
    lasts = seen.live_count > 0 and (rate_per_s > 0 or quiet_s < spare_for_s)
    active = now.total > 0 or lasts
    expected_per_s = known.bursts.rate_per_s(rate_per_s, window_s) if active else 0.0
    current, kept = seen.live_count, have.ready + len(have.starting_s)
    beyond = now.total - have.ready * parameters.slots
    settled = past.backlog_s is None or now_s - past.backlog_s > service_s
    if beyond > 0:
        piled = past.piled or not have.ready or bool(have.starting_s)
    else:
        piled = past.piled and not settled  # The last of them are in service.
    return Situation(
        parameters,
        now,
        have,
        rate_per_s,
        window_s,
        expected_per_s,
        service_s,
        known.drained.rate_per_s(parameters.slots, service_s),
        current,
        beyond if beyond > 0 else 0.0,
        kept if kept < current else current,
        active,
        settled,
        piled,
        now_s,
    )


def _automatic(
    seen: Observation, view: Situation, known: traffic.Traffic, past: ScalerState
) -> tuple[Verdict, int, Mapping[str, float], ScalerState]:
    """Recommend, remember, limit."""
    parameters, now_s = view.parameters, view.now_s
    by_load = parameters.policy is COMMITTED
    advice = committed.recommend(view) if by_load else queuedepth.recommend(view)
    least = _least(seen, view)
    verdict = Verdict(advice.replicas, advice.reason, (advice.why,))
    verdict = _floored(verdict, least, seen, view)
    watch, arrived = past.watch, known.arrived
    if by_load and view.backlog > 0:
        watch = progress.advance(watch, view, arrived)
        verdict = progress.guard(verdict, view, watch, arrived)
    elif watch.since_s is not None:
        watch = progress.IDLE
    if view.supply.late:
        verdict = repair.replace_late(verdict, view)
    wanted, asked = verdict.replicas, verdict.reason
    if view.demand.missing:
        verdict = limits.know(verdict, view)
    up_s, down_s, held = parameters.up.window_s, parameters.down.window_s, verdict.replicas
    if held > advice.lasting and not view.demand.missing:
        held = min(held, max(advice.lasting, least))
    recommendations, growth = past.recommendations or _found(view), past.growth
    if up_s or growth:
        growth = windows.record_held(growth or _found(view), verdict.replicas, now_s, up_s)
    recommendations = windows.record_held(recommendations, held, now_s, down_s)
    backlog_s = now_s if view.backlog > 0 else past.backlog_s
    past = past.after(known, watch, backlog_s, view.piled, recommendations, growth)
    verdict = limits.stabilize(verdict, view, past)
    verdict = limits.rate(verdict, view, past)
    verdict = limits.bound(verdict, view)
    current = view.current
    if verdict.replicas < current:
        verdict = limits.shrink_safely(verdict, view, seen, past)
        verdict = limits.toward_zero(verdict, view, seen, past)
    verdict = limits.fit(verdict, view)
    count = verdict.replicas
    if verdict.reason is not asked and (count > current < wanted or 0 < count < current > wanted):
        # It does move the way the policy wants: its reason stands, what slowed it is a limit.
        verdict = verdict._replace(reason=asked)
    if verdict.replicas < view.current and parameters.mode is UP_ONLY:
        verdict = verdict.moved(view.current, verdict.reason, _up_only)
    return verdict, wanted, advice.inputs, past


def _found(view: Situation) -> windows.Recommendations:
    """As in the HPA, the count found at first is the first recommendation."""
    return (windows.Recommended(view.now_s, view.current),)


def _up_only() -> str:
    return "mode ScaleUpOnly: no shrink"


def _awake(seen: Observation, now_s: float) -> bool:
    """Whether it is kept awake by hand."""
    return seen.wake or (seen.awake_until_s is not None and now_s < seen.awake_until_s)


def _least(seen: Observation, view: Situation) -> int:
    """Anything held, a wake by hand, and any open request ask for at least some replicas."""
    now = view.demand
    if now.held > 0 or now.refused > 0 or _awake(seen, view.now_s):
        return view.parameters.activation_replicas
    return 1 if now.total > 0 else 0


def _floored(verdict: Verdict, least: int, seen: Observation, view: Situation) -> Verdict:
    """No fewer than that, and from zero with a reason of its own."""
    parameters, count = view.parameters, max(verdict.replicas, least)
    if view.current == 0 and count > 0:

        def nothing() -> str:
            by_hand = "woken by hand, " if _awake(seen, view.now_s) else ""
            cold_start = wording.seconds(parameters.cold_start_s)
            return f"{by_hand}nothing runs and nothing starts, the first is there in {cold_start}"

        return verdict._replace(replicas=count, reason=Reason.ACTIVATION, why=(nothing,))
    if count == verdict.replicas:
        return verdict
    return verdict.adding(lambda: f"at least {least} while awake", replicas=count)


def _conclude(
    seen: Observation,
    view: Situation,
    verdict: Verdict,
    wanted: int,
    inputs: Mapping[str, float],
    claim: claims.Claim,
    deletions: tuple[str, ...],
    past: ScalerState,
) -> tuple[Decision, ScalerState]:
    """Put the record together, and remember what was asked for."""
    now, have, now_s = view.demand, view.supply, view.now_s
    current, count, reason = view.current, verdict.replicas, verdict.reason
    left_alone = claim.foreign and not claim.force
    next_ready_s = have.starting_s[0] if have.starting_s else None
    if next_ready_s is None and count > current:
        next_ready_s = now_s + view.parameters.cold_start_s
    decision = Decision(
        count,
        current,
        Reason.CONFLICT if left_alone else reason,
        telling.Account(seen, view, verdict, wanted, inputs, past, left_alone),
        (*verdict.limits, Reason.CONFLICT) if claim.foreign else verdict.limits,
        wanted,
        schedule.revisit_s(seen, view, verdict, wanted, claim, past),
        count == 0 < current and reason is not Reason.MANUAL,
        claim,
        deletions,
        now.failing,
        now.total > 0 or view.arrival_rate_per_s > 0,
        next_ready_s,
        view.arrival_rate_per_s,
        view.service_s,
        verdict.missing_replicas,
        have.stuck,
    )
    if past.asked_count != count:
        past = past._replace(asked_count=count, asked_at_s=now_s)
    return decision, past
