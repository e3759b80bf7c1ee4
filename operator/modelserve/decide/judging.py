"""The conditions of a ModelServe, each judged from the facts, with its reason and its sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from modelserve.api import spec as specs
from modelserve.api import status as statuses
from modelserve.api import timestamps
from modelserve.api.status import ConditionType
from modelserve.decide import wording
from modelserve.decide.facts import Facts
from modelserve.decide.observation import Replica, ReplicaState
from modelserve.decide.record import Reason

_STUCK_WORDS: Mapping[ReplicaState, str] = {
    ReplicaState.UNSCHEDULABLE: "no node has room for it",
    ReplicaState.STUCK: "it does not start",
}
STARTS_FAIL = "StartsFail"
# What ScalingLimited names: the first of these that counts.
LIMITS = (
    Reason.INSUFFICIENT_GPU,
    Reason.AT_MAXIMUM,
    Reason.AT_MINIMUM,
    Reason.RATE_LIMITED,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition without its stamps."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def conditions(
    facts: Facts, ignored_replicas: int | None, before: Sequence[statuses.Condition]
) -> list[statuses.Condition]:
    """All conditions that apply, with the transition times of those that did not flip."""
    found = [
        _ready(facts),
        _available(facts),
        _active(facts),
        _able_to_scale(facts),
        _limited(facts),
        _metrics(facts),
        _degraded(facts),
        _conflict(facts, ignored_replicas),
    ]
    if facts.rolling_out:
        message = "a new version of the pods is being rolled out"
        found.append(Fact(ConditionType.RECONCILING, "True", "RollingOut", message))
    if (blocked := facts.blocked) is not None:
        found.append(Fact(ConditionType.STALLED, "True", blocked.reason, blocked.message))
    return stamped(found, before, facts.generation, facts.now_wall_s)


def stamped(
    found: Sequence[Fact],
    before: Sequence[statuses.Condition],
    generation: int,
    now_wall_s: float,
) -> list[statuses.Condition]:
    """Facts as conditions; the transition time moves only when the status flips."""
    known = {condition.type: condition for condition in before}
    result = []
    for fact in found:
        old = known.get(str(fact.type))
        kept = old.last_transition_time if old and old.status == fact.status else None
        result.append(
            statuses.Condition(
                type=str(fact.type),
                status=fact.status,
                reason=fact.reason,
                message=fact.message,
                last_transition_time=kept or timestamps.format_time(now_wall_s),
                observed_generation=generation,
            )
        )
    return result


def flipped(
    kind: ConditionType, before: statuses.ModelServeStatus, after: statuses.ModelServeStatus
) -> bool:
    """Whether this condition has just turned True."""
    return not is_true(kind, before) and is_true(kind, after)


def is_true(kind: ConditionType, status: statuses.ModelServeStatus) -> bool:
    """Whether the condition is there and True."""
    return any(c.type == kind and c.status == "True" for c in status.conditions)


def failed_start(status: statuses.ModelServeStatus, generation: int) -> str:
    """What a status of this generation tells of a failed start; empty if it tells of none."""
    for condition in status.conditions:
        if condition.type == ConditionType.DEGRADED and condition.reason == STARTS_FAIL:
            return condition.message if condition.observed_generation == generation else ""
    return ""


def _ready(facts: Facts) -> Fact:
    if (blocked := facts.blocked) is not None:
        return Fact(ConditionType.READY, "False", blocked.reason, blocked.message)
    message = "the spec is valid and requests are accepted, warm or cold"
    return Fact(ConditionType.READY, "True", "Accepting", message)


def _available(facts: Facts) -> Fact:
    ready = facts.seen.ready_count
    if ready:
        message = f"{wording.replicas(ready)} ready"
        return Fact(ConditionType.AVAILABLE, "True", "ReplicaReady", message)
    if not facts.seen.live_count:
        message = "at zero: a request wakes the model"
        if facts.blocked is not None and not facts.blocked.scales:
            message = "at zero, and stalled: requests are answered with 503"
        if facts.spec.scaling.mode is specs.Mode.MANUAL:
            message = "spec.replicas is 0 in mode Manual: requests are answered with 503"
        return Fact(ConditionType.AVAILABLE, "False", "AtZero", message)
    return Fact(ConditionType.AVAILABLE, "False", "Starting", "no replica is ready yet")


def _active(facts: Facts) -> Fact:
    if facts.decision.active:
        return Fact(ConditionType.ACTIVE, "True", "Requests", "there are requests")
    return Fact(ConditionType.ACTIVE, "False", "Idle", "no requests are held, queued or under way")


def _able_to_scale(facts: Facts) -> Fact:
    mode, decision = facts.spec.scaling.mode, facts.decision
    if (blocked := facts.blocked) is not None and not blocked.scales:
        return Fact(ConditionType.ABLE_TO_SCALE, "False", blocked.reason, blocked.message)
    if mode is specs.Mode.DRY_RUN:
        message = "mode DryRun: decisions are recorded, nothing is written"
        return Fact(ConditionType.ABLE_TO_SCALE, "False", "DryRun", message)
    if decision.conflict:
        return Fact(ConditionType.ABLE_TO_SCALE, "False", "Conflict", decision.message)
    if facts.silent_gateways and decision.desired < decision.current:
        message = f"{decision.message}; not before this is mended: {facts.silent_gateways[0]}"
        return Fact(ConditionType.ABLE_TO_SCALE, "False", str(Reason.NO_SIGNAL), message)
    return Fact(ConditionType.ABLE_TO_SCALE, "True", str(decision.reason), decision.message)


def _limited(facts: Facts) -> Fact:
    limits = facts.decision.limits
    limit = next((known for known in LIMITS if known in limits), None)
    if limit is None:
        message = "the replica count is what the policy asks for"
        return Fact(ConditionType.SCALING_LIMITED, "False", "DesiredWithinLimits", message)
    return Fact(ConditionType.SCALING_LIMITED, "True", str(limit), facts.decision.message)


def _metrics(facts: Facts) -> Fact:
    decision = facts.decision
    if facts.silent_gateways:
        # It may hold requests: even with all other figures nothing is taken away.
        message = f"nothing shrinks: {'; '.join(facts.silent_gateways[:3])}"
        return Fact(ConditionType.METRICS_AVAILABLE, "False", str(Reason.NO_SIGNAL), message)
    if decision.signal_ok:
        message = "gateways and engines report"
        return Fact(ConditionType.METRICS_AVAILABLE, "True", "SignalsFresh", message)
    missing = ", ".join(decision.signal_missing) or "any source"
    message = f"no usable figures from {missing}: nothing shrinks until there are"
    return Fact(ConditionType.METRICS_AVAILABLE, "False", str(Reason.NO_SIGNAL), message)


def _degraded(facts: Facts) -> Fact:
    kind, stuck = ConditionType.DEGRADED, facts.decision.stuck_uids
    if stuck:
        named = [f"{r.name} ({_trouble(facts, r)})" for r in facts.seen.replicas if r.uid in stuck]
        message = f"{wording.replicas(len(stuck))} stuck: {', '.join(sorted(named)[:5])}"
        if facts.failed_start and not any(facts.troubles.get(uid) for uid in stuck):
            message = f"{message}; {facts.failed_start}"
        return Fact(kind, "True", "ReplicasStuck", message)
    if facts.pods_refused:
        message = f"the API server takes no pods: {facts.pods_refused}"
        return Fact(kind, "True", "PodsRefused", message)
    if not facts.pool_nodes:
        message = f"no node has the GPU {facts.gpu_title}: replicas will wait for one"
        return Fact(kind, "True", "NoPool", message)
    if facts.failed_start:
        return Fact(kind, "True", STARTS_FAIL, facts.failed_start)
    return _questionable(facts) or Fact(kind, "False", "AsExpected", "nothing is amiss")


def _trouble(facts: Facts, replica: Replica) -> str:
    word = _STUCK_WORDS.get(replica.state, "overdue")
    told = facts.troubles.get(replica.uid)
    return f"{word}: {told}" if told else word


def _questionable(facts: Facts) -> Fact | None:
    """What the spec asks for and hardly means."""
    kind, scaling, slots = ConditionType.DEGRADED, facts.spec.scaling, facts.slots
    if facts.served_name_holder:
        message = (
            f"{facts.served_name_holder} is older and gets the requests under this served name: "
            f"reach this one as namespace/name, or give it another spec.model.servedName"
        )
        return Fact(kind, "True", "ServedNameTaken", message)
    target = scaling.target_queue_depth
    if scaling.policy is specs.Policy.QUEUE_DEPTH and target is not None and target > slots:
        message = (
            f"scaling.targetQueueDepth is {target:g}, but a replica works on {slots} requests at "
            f"a time: the others always wait; lower it, or raise engine.batching.maxSequences"
        )
        return Fact(kind, "True", "TargetBeyondSlots", message)
    wanted_s, cold_s = scaling.cooldown_seconds, facts.predicted.total_s
    if wanted_s is not None and wanted_s < cold_s and not scaling.min_replicas:
        message = (
            f"scaling.cooldownSeconds is {wanted_s}, but a cold start takes about "
            f"{wording.seconds(cold_s)}: the model is away for longer than it stays idle"
        )
        return Fact(kind, "True", "CooldownBelowColdStart", message)
    return None


def _conflict(facts: Facts, ignored_replicas: int | None) -> Fact:
    kind, wanted = ConditionType.CONFLICT, facts.spec.replicas
    if facts.decision.conflict:
        who = " and ".join(facts.foreign_managers) or "somebody else"
        manual = facts.spec.scaling.mode is specs.Mode.MANUAL
        by_hand = "" if manual else "set spec.scaling.mode to Manual and "
        message = (
            f"{who} set the Deployment to {facts.seen.live_count}; that count is taken back. "
            f"To scale by hand, {by_hand}scale the ModelServe, not its Deployment"
        )
        return Fact(kind, "True", "ForeignScale", message)
    if ignored_replicas is not None and wanted != ignored_replicas:
        message = (
            f"spec.replicas was set to {wanted}, which acts only in mode Manual: set "
            f"spec.scaling.mode to Manual, or spec.scaling.minReplicas and maxReplicas instead"
        )
        return Fact(kind, "True", "ReplicasIgnored", message)
    return Fact(kind, "False", "OneWriter", "nobody else writes the replica count")
