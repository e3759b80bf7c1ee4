"""The status of a ModelServe from what was seen and decided: counts, conditions, what comes next.

Instants come in as Unix seconds and go out as RFC 3339. Which differences are worth a write at once
is told by ``essence``: numbers that move all the time are not in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from modelserve.api import spec as specs
from modelserve.api import status as statuses
from modelserve.api import timestamps
from modelserve.api.status import ConditionType
from modelserve.decide import coldstart, demand, observation, prediction, record, wording
from modelserve.decide.observation import ReplicaState
from modelserve.decide.record import Reason

PHASE_WORDS: Mapping[str, str] = {
    "Scheduling": "scheduling",
    "Provisioning": "a new node",
    "ImagePull": "image pull",
    "WeightLoad": "weight load",
    "WarmUp": "warm-up",
    "Probe": "the readiness probe",
    "Started": "the readiness probe",
}
_STUCK_WORDS: Mapping[ReplicaState, str] = {
    ReplicaState.UNSCHEDULABLE: "no node has room for it",
    ReplicaState.STUCK: "it does not start",
}
_LIMITS = (
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


@dataclass(frozen=True, slots=True)
class Facts:
    """What a report is made of. ``now_wall_s`` is Unix time, ``now_s`` emulated."""

    spec: specs.ModelServeSpec
    generation: int
    seen: observation.Observation
    demand: demand.Demand
    decision: record.Decision
    predicted: coldstart.ColdStart
    pool_nodes: int
    gpu_title: str
    phases: Mapping[str, str]  # by UID of a starting replica: the phase it is in
    now_s: float
    now_wall_s: float
    scale: float
    rolling_out: bool = False
    name_taken: str = ""  # somebody else's object has a child's name
    slots: int = 1
    served_name_holder: str = ""  # an older ModelServe that answers to the same name
    foreign_managers: tuple[str, ...] = ()

    def wall(self, at_s: float) -> str:
        """An emulated instant as a stamp."""
        return timestamps.format_time(self.now_wall_s + (at_s - self.now_s) / self.scale)


def counts(facts: Facts) -> dict[str, Any]:
    """The plain numbers of the status, and what comes next."""
    replicas = facts.seen.replicas
    states = [replica.state for replica in replicas]
    draining = states.count(ReplicaState.TERMINATING)
    stuck = len(facts.decision.stuck_uids)
    ready = states.count(ReplicaState.READY)
    staying = len(states) - draining
    decision, size = facts.decision, facts.spec.gpu.tensor_parallel
    in_use = sum(size for replica in replicas if replica.node)
    # What is ordered and has no pod yet is starting, too.
    starting = max(staying, facts.seen.live_count) - ready - stuck
    return {
        "observed_generation": facts.generation,
        "replicas": staying,
        "desired_replicas": decision.desired,
        "ready_replicas": ready,
        "starting_replicas": max(0, starting),
        "stuck_replicas": stuck,
        "draining_replicas": draining,
        "demand": _demand(facts.demand),
        "waiting_for": waiting_for(facts),
        "next_ready_at": _maybe(facts, decision.next_ready_at_s),
        "scale_down_at": _maybe(facts, decision.scale_down_at_s),
        "gpu": statuses.GpuStatus(per_replica=size, in_use=in_use),
    }


def waiting_for(facts: Facts) -> str | None:
    """``image pull on dgx-1, 41 s left``: what the next ready replica waits for."""
    starting = [
        replica
        for replica in facts.seen.replicas
        if replica.state in (ReplicaState.STARTING, ReplicaState.ADMITTED)
    ]
    if starting:
        first = min(starting, key=lambda r: (r.expected_ready_s or float("inf"), r.created_s))
        phase = PHASE_WORDS.get(facts.phases.get(first.uid, ""), "the engine's start")
        return f"{phase} on {first.node}{_left(facts, first)}"
    missing = [r for r in facts.seen.replicas if r.state is ReplicaState.UNSCHEDULABLE]
    size = facts.spec.gpu.tensor_parallel
    if missing:
        return f"{size} free {facts.gpu_title} on one node"
    pending = any(r.state is ReplicaState.PENDING for r in facts.seen.replicas)
    ordered = facts.seen.live_count > len(facts.seen.replicas)
    return "scheduling" if pending or ordered else None


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
    if facts.name_taken:
        found.append(Fact(ConditionType.STALLED, "True", "NameTaken", facts.name_taken))
    return stamped(found, before, facts.generation, facts.now_wall_s)


def refused(
    problem: prediction.Problem,
    generation: int,
    before: statuses.ModelServeStatus,
    now_wall_s: float,
) -> statuses.ModelServeStatus:
    """The status of a spec that cannot be served: everything but the conditions stays."""
    found = [
        Fact(ConditionType.READY, "False", problem.reason, problem.message),
        Fact(ConditionType.STALLED, "True", problem.reason, problem.message),
    ]
    told = stamped(found, before.conditions, generation, now_wall_s)
    fresh = {condition.type for condition in told} | {ConditionType.RECONCILING}
    kept = [condition for condition in before.conditions if condition.type not in fresh]
    update = {"observed_generation": generation, "conditions": [*told, *kept]}
    return before.model_copy(update=update)


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


def essence(status: statuses.ModelServeStatus) -> dict[str, Any]:
    """What a reader acts on at once; anything else may wait for the next write."""
    document = status.model_dump(mode="json", exclude={"autoscaler", "cold_start", "history"})
    queue = document.pop("demand") or {}
    document["demand"] = {name: bool(queue.get(name)) for name in ("held", "total")}
    for name in ("next_ready_at", "scale_down_at"):
        document[name] = document[name] is not None
    document["waiting_for"] = (document["waiting_for"] or "").partition(", ")[0]
    document["conditions"] = [
        (c["type"], c["status"], c["reason"], c["observed_generation"])
        for c in document["conditions"]
    ]
    return document


def figures(status: statuses.ModelServeStatus) -> dict[str, Any]:
    """What a reader looks at: everything but what the autoscaler keeps for itself."""
    return status.model_dump(mode="json", exclude={"autoscaler"})


def _ready(facts: Facts) -> Fact:
    if facts.name_taken:
        return Fact(ConditionType.READY, "False", "NameTaken", facts.name_taken)
    message = "the spec is valid and requests are accepted, warm or cold"
    return Fact(ConditionType.READY, "True", "Accepting", message)


def _available(facts: Facts) -> Fact:
    ready = sum(replica.serves for replica in facts.seen.replicas)
    if ready:
        message = f"{wording.replicas(ready)} ready"
        return Fact(ConditionType.AVAILABLE, "True", "ReplicaReady", message)
    if not facts.seen.live_count:
        message = "at zero: a request wakes the model"
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
    if facts.name_taken:
        return Fact(ConditionType.ABLE_TO_SCALE, "False", "NameTaken", facts.name_taken)
    if mode is specs.Mode.DRY_RUN:
        message = "mode DryRun: decisions are recorded, nothing is written"
        return Fact(ConditionType.ABLE_TO_SCALE, "False", "DryRun", message)
    if decision.conflict:
        return Fact(ConditionType.ABLE_TO_SCALE, "False", "Conflict", decision.message)
    return Fact(ConditionType.ABLE_TO_SCALE, "True", str(decision.reason), decision.message)


def _limited(facts: Facts) -> Fact:
    limits = facts.decision.limits
    limit = next((known for known in _LIMITS if known in limits), None)
    if limit is None:
        message = "the replica count is what the policy asks for"
        return Fact(ConditionType.SCALING_LIMITED, "False", "DesiredWithinLimits", message)
    return Fact(ConditionType.SCALING_LIMITED, "True", str(limit), facts.decision.message)


def _metrics(facts: Facts) -> Fact:
    decision = facts.decision
    if decision.signal_ok:
        message = "gateways and engines report"
        return Fact(ConditionType.METRICS_AVAILABLE, "True", "SignalsFresh", message)
    missing = ", ".join(decision.signal_missing) or "any source"
    message = f"no usable figures from {missing}: nothing shrinks until there are"
    return Fact(ConditionType.METRICS_AVAILABLE, "False", str(Reason.NO_SIGNAL), message)


def _degraded(facts: Facts) -> Fact:
    kind, stuck = ConditionType.DEGRADED, facts.decision.stuck_uids
    if stuck:
        named = [
            f"{r.name} ({_STUCK_WORDS.get(r.state, 'overdue')})"
            for r in facts.seen.replicas
            if r.uid in stuck
        ]
        message = f"{wording.replicas(len(stuck))} stuck: {', '.join(sorted(named)[:5])}"
        return Fact(kind, "True", "ReplicasStuck", message)
    if not facts.pool_nodes:
        message = f"no node has the GPU {facts.gpu_title}: replicas will wait for one"
        return Fact(kind, "True", "NoPool", message)
    return _questionable(facts) or Fact(kind, "False", "AsExpected", "nothing is amiss")


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


def _demand(now: demand.Demand) -> statuses.DemandStatus:
    waiting, running = round(now.waiting), round(now.running)
    return statuses.DemandStatus(
        queued=now.held + waiting,
        held=now.held,
        waiting=waiting,
        running=running,
        total=round(now.total),
    )


def _left(facts: Facts, replica: observation.Replica) -> str:
    if replica.expected_ready_s is None:
        return ""
    return f", {max(0.0, replica.expected_ready_s - facts.now_s):.0f} s left"


def _maybe(facts: Facts, at_s: float | None) -> str | None:
    return None if at_s is None else facts.wall(at_s)
