"""The status of a ModelServe from what was seen and decided: counts, and what comes next.

Instants come in as Unix seconds and go out as RFC 3339. Which differences are worth a write at once
is told by ``essence``: numbers that move all the time are not in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api import status as statuses
from modelserve.api.status import ConditionType
from modelserve.decide import demand, judging, observation, prediction
from modelserve.decide.facts import Facts
from modelserve.decide.observation import ReplicaState

PHASE_WORDS: Mapping[str, str] = {
    "Scheduling": "scheduling",
    "Provisioning": "a new node",
    "ImagePull": "image pull",
    "WeightLoad": "weight load",
    "WarmUp": "warm-up",
    "Probe": "the readiness probe",
    "Started": "the readiness probe",
}

# In the names of the GPU resources that a scheduler's message lists as insufficient.
_GPU_WORDS = (".com/gpu", ".com/mig-")


def counts(facts: Facts) -> dict[str, Any]:
    """The plain numbers of the status, and what comes next."""
    replicas = facts.seen.replicas
    states = [replica.state for replica in replicas]
    draining = states.count(ReplicaState.TERMINATING)
    stuck = len(facts.decision.stuck_uids)
    ready = facts.seen.ready_count
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
        replica for replica in facts.seen.replicas if replica.state is ReplicaState.STARTING
    ]
    if starting:
        first = min(starting, key=lambda r: (r.expected_ready_s or float("inf"), r.created_s))
        phase = PHASE_WORDS.get(facts.phases.get(first.uid, ""), "the engine's start")
        return f"{phase} on {first.node}{_left(facts, first)}"
    missing = [r for r in facts.seen.replicas if r.state is ReplicaState.UNSCHEDULABLE]
    size = facts.spec.gpu.tensor_parallel
    if missing and _fits_nowhere(facts, missing):
        return "a node that takes it"
    if missing:
        return f"{size} free {facts.gpu_title} on one node"
    if facts.pods_refused:
        return "pods, which the API server refuses"
    pending = any(r.state is ReplicaState.PENDING for r in facts.seen.replicas)
    ordered = facts.seen.live_count > len(facts.seen.replicas)
    return "scheduling" if pending or ordered else None


def _fits_nowhere(facts: Facts, missing: Sequence[observation.Replica]) -> bool:
    """Whether the scheduler names anything but GPUs that its nodes lack."""
    told = facts.troubles.get(missing[0].uid, "")
    return bool(facts.pool_nodes and told) and not any(word in told for word in _GPU_WORDS)


def refused(
    problem: prediction.Problem,
    generation: int,
    before: statuses.ModelServeStatus,
    now_wall_s: float,
) -> statuses.ModelServeStatus:
    """The status of a spec that cannot be served: everything but the conditions stays."""
    found = [
        judging.Fact(ConditionType.READY, "False", problem.reason, problem.message),
        judging.Fact(ConditionType.STALLED, "True", problem.reason, problem.message),
    ]
    told = judging.stamped(found, before.conditions, generation, now_wall_s)
    fresh = {condition.type for condition in told} | {ConditionType.RECONCILING}
    kept = [condition for condition in before.conditions if condition.type not in fresh]
    update = {"observed_generation": generation, "conditions": [*told, *kept]}
    return before.model_copy(update=update)


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
