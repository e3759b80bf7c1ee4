"""Writes the status, if a reader would miss something, and tells of transitions in Events."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import ports
from modelserve.api import conditions, names, timestamps
from modelserve.api import spec as specs
from modelserve.api import status as statuses
from modelserve.api.keys import Key
from modelserve.api.status import ConditionType, EventReason
from modelserve.decide import demand, failing, judging, prediction, report, state
from modelserve.decide.facts import Block, Facts
from modelserve.decide.record import Reason
from modelserve.reconciling import memory as memories
from modelserve.reconciling import observe, sightings
from modelserve.reconciling.memory import Memory
from modelserve.reconciling.scaler import Written
from modelserve.reconciling.sightings import Now
from modelserve.reconciling.world import Uid, World
from modelserve.render import labels, replica_owner
from modelserve.telemetry import Telemetry

# Figures that move all the time are written at most so often.
FIGURES_REAL_S = 10.0

_WARNINGS = {
    EventReason.SCALING_LIMITED,
    EventReason.METRICS_UNAVAILABLE,
    EventReason.REPLICA_STUCK,
    EventReason.DRAIN_TIMED_OUT,
    EventReason.INVALID_SPEC,
    EventReason.CONFLICT,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one reconcile saw and did."""

    spec: specs.ModelServeSpec
    assessment: prediction.Assessment
    seen: observe.Seen
    blocked: Block | None = None


class Reporting:
    """Status and Events of ModelServes in one cluster."""

    def __init__(
        self,
        cluster: ports.Cluster,
        world: World,
        events: ports.EventSink,
        telemetry: Telemetry,
    ) -> None:
        self._cluster = cluster
        self._world = world
        self._events = events
        self._telemetry = telemetry

    def emit(self, key: Key, reason: EventReason, message: str) -> None:
        """An Event about the ModelServe."""
        kind = "Warning" if reason in _WARNINGS else "Normal"
        if (modelserve := self._world.modelserves.get(key)) is not None:
            self._events.emit(modelserve, kind, str(reason), message)

    def scaled(self, key: Key, memory: Memory, written: Written, now: Now) -> None:
        """Take a written count down in the history, and tell of it."""
        decision = written.decision
        entry = statuses.ScaleRecord(
            from_=written.before,
            to=written.after,
            reason=str(decision.reason),
            message=decision.message,
            at=timestamps.format_time(now.wall_s),
            inputs={name: round(value, 4) for name, value in decision.inputs.items()},
        )
        if written.before == written.after:
            return
        history = memories.with_record(memory.status.history, entry)
        last = entry.model_copy(update={"inputs": {}})  # the history has them
        memory.status = memory.status.model_copy(update={"last_scale": last, "history": history})
        self._telemetry.scaled(decision)
        self.emit(key, _scaled(written), decision.message)

    async def write(self, key: Key, memory: Memory, outcome: Outcome, now: Now) -> float | None:
        """Write the status if need be. Returns the real instant at which more is to be written."""
        status = self._compose(key, memory, outcome, now)
        before, memory.status = memory.status, status
        self._tell_transitions(key, before, status)
        return await self._save(key, memory, now)

    async def refuse(
        self, key: Key, memory: Memory, problem: prediction.Problem, now: Now
    ) -> float | None:
        """Say why the spec cannot be served."""
        before = memory.status
        memory.status = report.refused(problem, memory.generation, before, now.wall_s)
        if judging.flipped(ConditionType.STALLED, before, memory.status):
            self.emit(key, EventReason.INVALID_SPEC, f"{problem.reason}: {problem.message}")
        return await self._save(key, memory, now)

    async def _save(self, key: Key, memory: Memory, now: Now) -> float | None:
        known = memories.parse_status(self._world.modelserve(key).get("status") or {})
        if report.essence(memory.status) == report.essence(known):
            if report.figures(memory.status) == report.figures(known):
                return None
            due_real_s = memory.status_real_s + FIGURES_REAL_S
            if now.real_s < due_real_s:
                return due_real_s
        body = {
            "metadata": {"name": key.name, "uid": memory.uid},
            "status": _without_empty(
                memory.status.model_dump(mode="json", by_alias=True, exclude_none=True)
            ),
        }
        answer = await self._cluster.apply(
            ports.MODELSERVES,
            key.namespace,
            key.name,
            body,
            manager=names.STATUS_MANAGER,
            force=True,
            subresource="status",
        )
        memory.status_real_s = now.real_s
        self._telemetry.status_writes.inc()
        self._world.put_modelserve(answer)
        return None

    def _compose(
        self, key: Key, memory: Memory, outcome: Outcome, now: Now
    ) -> statuses.ModelServeStatus:
        facts = self._facts(key, memory, outcome, now)
        spec, before = outcome.spec, memory.status
        ignored = ignored_replicas(spec, before.ignored_replicas)
        measured = before.cold_start or statuses.ColdStartStatus()
        cold_start = measured.model_copy(
            update={"predicted": memories.parts(outcome.seen.predicted)}
        )
        return before.model_copy(
            update={
                **report.counts(facts),
                "selector": labels.selector_text(key.name),
                "ignored_replicas": ignored,
                "cold_start": cold_start,
                "autoscaler": _autoscaler(memory, outcome.seen, now),
                "conditions": judging.conditions(facts, ignored, before.conditions),
            }
        )

    def _facts(self, key: Key, memory: Memory, outcome: Outcome, now: Now) -> Facts:
        seen, decision = outcome.seen, memory.decision
        assert decision is not None, "reported before anything was decided"
        live = self._world.deployments.get(key)
        foreign = replica_owner.foreign_managers(live) if live else ()
        modelserve = self._world.modelserves.get(key)
        holder = self._world.name_holder(modelserve) if modelserve else None
        troubles = {uid: sightings.trouble(seen.pods[Uid(uid)]) for uid in decision.stuck_uids}
        memory.failure = failing.advance(
            memory.failure,
            seen.observed.replicas,
            decision.delete_uids,
            troubles,
            now.emulated_s,
        )
        return Facts(
            spec=outcome.spec,
            generation=memory.generation,
            seen=seen.observed,
            demand=demand.measure(seen.observed, seen.parameters, now.emulated_s),
            decision=decision,
            predicted=seen.predicted,
            pool_nodes=seen.pool_nodes,
            gpu_title=outcome.assessment.gpu.title,
            phases=phases(seen),
            now_s=now.emulated_s,
            now_wall_s=now.wall_s,
            scale=now.scale,
            rolling_out=_rolling_out(live),
            blocked=outcome.blocked,
            troubles=troubles,
            failed_start=memory.failure.message if memory.failure else "",
            pods_refused=_pods_refused(live),
            slots=seen.parameters.slots,
            served_name_holder=str(holder) if holder else "",
            foreign_managers=foreign,
            silent_gateways=seen.silent_gateways,
        )

    def _tell_transitions(
        self, key: Key, before: statuses.ModelServeStatus, after: statuses.ModelServeStatus
    ) -> None:
        told = (
            (ConditionType.SCALING_LIMITED, EventReason.SCALING_LIMITED),
            (ConditionType.CONFLICT, EventReason.CONFLICT),
            (ConditionType.STALLED, EventReason.INVALID_SPEC),
        )
        for kind, reason in told:
            if judging.flipped(kind, before, after) and not _is_usual(kind, after):
                self.emit(key, reason, _message(kind, after))
        kind = ConditionType.METRICS_AVAILABLE
        if judging.is_true(kind, before) and not judging.is_true(kind, after):
            self.emit(key, EventReason.METRICS_UNAVAILABLE, _message(kind, after))


def _without_empty(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status without lists and maps that hold nothing: `kubectl describe` prints each."""
    nested = {
        key: _without_empty(value) if isinstance(value, Mapping) else value
        for key, value in status.items()
    }
    return {key: value for key, value in nested.items() if value not in ([], {})}


def ignored_replicas(spec: specs.ModelServeSpec, recorded: int | None) -> int | None:
    """``spec.replicas`` as recorded when it ceased to act, or at creation; None in mode Manual."""
    if spec.scaling.mode is specs.Mode.MANUAL:
        return None
    return spec.replicas if recorded is None else recorded


def phases(seen: observe.Seen) -> dict[str, str]:
    """The phase each starting replica is in, by UID."""
    found: dict[str, str] = {}
    for replica in seen.observed.replicas:
        pod = seen.pods[Uid(replica.uid)]
        starting = conditions.find(pod, names.CONDITION_STARTING)
        stamps = sightings.phase_stamps(pod)
        if starting.get("reason"):
            found[replica.uid] = str(starting["reason"])
        elif stamps is not None and stamps.stamps:
            found[replica.uid] = str(stamps.stamps[-1].phase)
    return found


def _autoscaler(memory: Memory, seen: observe.Seen, now: Now) -> statuses.AutoscalerStatus:
    decision = memory.decision
    rate_per_s = decision.arrival_rate_per_s if decision else 0.0
    saved = state.to_status(
        memory.scaler,
        now.emulated_s,
        arrival_rate_per_s=rate_per_s,
        cold_start_s=seen.parameters.cold_start_s,
    )
    active_s = memory.scaler.known.last_active_s
    return saved.model_copy(
        update={
            "written_replicas": memory.written_count,
            "wait_seconds": round(decision.wait_s / now.scale, 1) if decision else None,
            "last_request_at": _stamp(active_s, now),
        }
    )


def _stamp(at_s: float | None, now: Now) -> str | None:
    return None if at_s is None else timestamps.format_time(now.wall_at(at_s))


def _rolling_out(live: ports.Object | None) -> bool:
    """Whether the Deployment's newest version is not what runs yet."""
    if live is None:
        return True
    if observe.rollout_in_progress(live):
        return True
    observed = live.get("status", {}).get("observedGeneration")
    return observed is None and not live.get("status")


def _pods_refused(live: ports.Object | None) -> str:
    """Why the ReplicaSet cannot create pods: a quota, a policy, a class that does not exist."""
    failure = conditions.find(live or {}, "ReplicaFailure")
    return str(failure.get("message") or "") if failure.get("status") == "True" else ""


def _scaled(written: Written) -> EventReason:
    if written.before == 0:
        return EventReason.ACTIVATED
    if written.after == 0:
        return EventReason.SCALED_TO_ZERO
    return EventReason.SCALED_UP if written.after > written.before else EventReason.SCALED_DOWN


def _is_usual(kind: ConditionType, status: statuses.ModelServeStatus) -> bool:
    """Whether nobody needs an Event of it: a model at rest stands at its minReplicas."""
    at_rest = (ConditionType.SCALING_LIMITED, str(Reason.AT_MINIMUM))
    return any((c.type, c.reason) == at_rest for c in status.conditions if c.type == kind)


def _message(kind: ConditionType, status: statuses.ModelServeStatus) -> str:
    return next((c.message for c in status.conditions if c.type == kind), "")
