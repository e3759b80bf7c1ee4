"""One reconcile of one ModelServe: observe, decide, write the count, then everything else."""

import asyncio
import logging
from collections.abc import Iterable

from modelserve import errors, ports
from modelserve.api import names, timestamps
from modelserve.api import spec as specs
from modelserve.api.keys import Key
from modelserve.api.status import EventReason
from modelserve.decide import facts, prediction, record, scaling, shares
from modelserve.reconciling import children, coldstarts, drains, observe, sightings
from modelserve.reconciling.memory import Memory
from modelserve.reconciling.observe import Seen
from modelserve.reconciling.reporting import Outcome, Reporting
from modelserve.reconciling.rollouts import Rollouts
from modelserve.reconciling.scaler import Scaler, Written
from modelserve.reconciling.sightings import Now
from modelserve.reconciling.world import Gone, World
from modelserve.render import labels, replica_owner
from modelserve.telemetry import Telemetry

# A decision that wants to be taken again at once still leaves others their turn.
SOONEST_REAL_S = 0.02
# A wake annotation younger than this at start-up has not been acted on by anybody.
FRESH_WAKE_REAL_S = 60.0
# What could not be carried out, as a gateway is silent or refused: nobody says when that is over.
AGAIN_REAL_S = 1.0
# Nor does anybody when what keeps a child from being written is out of the way: the object that has
# its name, a quota, a webhook.
BLOCKED_REAL_S = 30.0

_log = logging.getLogger(__name__)


class Reconciler:
    """Brings ModelServes to what they should be. One call per key at a time."""

    def __init__(
        self,
        cluster: ports.Cluster,
        world: World,
        demand: ports.DemandSource,
        metrics: ports.MetricSource,
        events: ports.EventSink,
        clock: ports.Clock,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.telemetry = telemetry or Telemetry()
        self.memories: dict[Key, Memory] = {}
        self._world = world
        self._demand = demand
        self._clock = clock
        self._sources = observe.Sources(world, demand, metrics)
        writer = children.Children(cluster)
        self._scaler = Scaler(cluster, writer, world, demand, clock)
        self._rollouts = Rollouts(writer, world, cluster, clock.scale)
        self._reporting = Reporting(cluster, world, events, self.telemetry)
        self._told: set[asyncio.Task[None]] = set()

    async def reconcile(self, key: Key) -> float | None:
        """Do what there is to do; when to come back, in monotonic real seconds, or None.

        Raises the ClusterError family: come back after a while.
        """
        began_real_s = self._clock.real_s()
        try:
            requeue_real_s = await self._reconcile(key)
        except Gone:
            requeue_real_s = self._clock.real_s()
        except Exception:
            self.telemetry.reconciled("error", self._clock.real_s() - began_real_s)
            raise
        self.telemetry.reconciled("ok", self._clock.real_s() - began_real_s)
        return requeue_real_s

    def short_of_gpus(self) -> list[Key]:
        """ModelServes that would have more replicas if there were GPUs."""
        return [
            key
            for key, memory in self.memories.items()
            if memory.decision is not None and memory.decision.missing_gpu_replicas
        ]

    async def _reconcile(self, key: Key) -> float | None:
        modelserve = self._world.modelserves.get(key)
        if modelserve is None or modelserve["metadata"].get("deletionTimestamp"):
            # Children go by their owner references.
            self.memories.pop(key, None)
            self.telemetry.forget(key)
            self._demand.forget(key.namespace, key.name)
            return None
        memory = self._memory(key, modelserve)
        self._assess(key, memory, modelserve)
        spec, assessment = memory.spec, memory.assessment
        if isinstance(assessment, prediction.Problem) or assessment is None or spec is None:
            assert isinstance(assessment, prediction.Problem)
            return await self._reporting.refuse(key, memory, assessment, self._now())
        return await self._serve(key, memory, spec, assessment)

    async def _serve(
        self,
        key: Key,
        memory: Memory,
        spec: specs.ModelServeSpec,
        assessment: prediction.Assessment,
    ) -> float | None:
        await self._scaler.finish(key, memory)
        seen, decision = self._decide(key, memory)
        # A wake waits for nothing: its write goes out before any other.
        written = await self._grow(key, memory, seen, decision)
        blocked = await self._ensure(key, memory, spec, assessment, seen)
        if blocked is None or blocked.scales:
            written = written or await self._hand_over(key, memory, decision)
            written = written or await self._shrink(key, memory, seen, decision)
        now = self._now()
        if written is not None:
            self._reporting.scaled(key, memory, written, now)
            seen, decision = self._decide(key, memory)
        await self._delete_stuck(key, seen, decision)
        for _pod, sentence in coldstarts.measure(memory, seen, now):
            self._reporting.emit(key, EventReason.COLD_START_FINISHED, sentence)
        sentences, overdue_real_s = drains.overdue(memory, seen, spec, now)
        for sentence in sentences:
            self._reporting.emit(key, EventReason.DRAIN_TIMED_OUT, sentence)
        self._share(key, seen, assessment)
        self.telemetry.decided(key, decision, seen.observed.ready_count)
        outcome = Outcome(spec, assessment, seen, blocked)
        instants = [
            await self._reporting.write(key, memory, outcome, now),
            overdue_real_s,
            sightings.lingers_until_real_s(memory.sightings.values(), now),
            now.real_s + BLOCKED_REAL_S if blocked else None,
            _revisit_real_s(decision, now),
        ]
        if decision.changes and (blocked is None or blocked.scales):
            instants.append(now.real_s + (AGAIN_REAL_S if written is None else 0.0))
        return self._requeue(instants)

    async def _ensure(
        self,
        key: Key,
        memory: Memory,
        spec: specs.ModelServeSpec,
        assessment: prediction.Assessment,
        seen: Seen,
    ) -> facts.Block | None:
        """Bring the children to what the spec asks for. What stands in the way, if anything."""
        try:
            await self._rollouts.ensure(key, memory, spec, assessment, seen)
        except children.ForeignObject as error:
            return facts.Block("NameTaken", str(error))
        except (errors.Invalid, errors.Forbidden) as error:
            live = self._world.deployments.get(key)
            ours = live is not None and labels.owned_by(live, self._world.modelserve(key))
            message = f"the API server refuses what the spec asks for: {error}"
            return facts.Block("DeploymentRefused", message, scales=ours)
        return None

    def _now(self) -> Now:
        clock = self._clock
        return Now(clock.now_s(), clock.real_s(), clock.wall_s(), clock.scale)

    def _memory(self, key: Key, modelserve: ports.Object) -> Memory:
        memory = self.memories.get(key)
        if memory is None or memory.uid != modelserve["metadata"]["uid"]:
            memory = Memory.restore(modelserve, self._clock.now_s())
            memory.wake_seen = _old_wake(modelserve, self._clock.wall_s())
            self.memories[key] = memory
        return memory

    def _assess(self, key: Key, memory: Memory, modelserve: ports.Object) -> None:
        """Once per generation: read the spec and look everything up."""
        generation = int(modelserve["metadata"].get("generation", 0))
        if generation == memory.generation:
            return
        if memory.generation >= 0:
            memory.failure = None  # of another spec
        memory.generation = generation
        try:
            memory.spec = specs.ModelServeSpec.model_validate(modelserve.get("spec") or {})
        except ValueError as error:
            message = f"the spec cannot be read: {error}"
            memory.assessment = prediction.Problem("InvalidSpec", message)
            return
        memory.assessment = prediction.assess(key.name, memory.spec)

    def _decide(self, key: Key, memory: Memory) -> tuple[Seen, record.Decision]:
        """Look and decide, and remember both. Nothing is waited for."""
        spec, assessment = memory.spec, memory.assessment
        assert spec is not None, "decided before the spec was read"
        assert isinstance(assessment, prediction.Assessment), "decided on a spec that is refused"
        now = self._now()
        seen = observe.look(self._sources, key, memory, spec, assessment, now)
        decision, memory.scaler = scaling.decide(
            seen.observed, seen.parameters, memory.scaler, now.emulated_s
        )
        memory.decision = decision
        return seen, decision

    async def _grow(
        self, key: Key, memory: Memory, seen: Seen, decision: record.Decision
    ) -> Written | None:
        live = self._world.deployments.get(key)
        # A foreign writer's count is taken over first; a step down from it goes the usual way.
        count = max(decision.desired, decision.current)
        acts = decision.changes and decision.desired > decision.current
        if live is None or not (acts or decision.force):
            return None
        if not labels.owned_by(live, self._world.modelserve(key)):
            return None
        held_since = observe.held_since_real_s(seen, key) if decision.current == 0 else None
        written = await self._scaler.write(key, memory, decision, count)
        if held_since is not None:
            self.telemetry.activation.observe(max(0.0, self._clock.real_s() - held_since))
        self._acted_on_wake(key, memory, seen)
        return written

    async def _hand_over(
        self, key: Key, memory: Memory, decision: record.Decision
    ) -> Written | None:
        """Right after creation, the scaler takes the count over, with the decided value."""
        live = self._world.deployments[key]
        count = replica_owner.live_replicas(live)
        fresh = replica_owner.is_to_be_taken(live)
        grows = decision.changes and decision.desired > count
        if not fresh and not grows:
            return None
        return await self._scaler.write(key, memory, decision, None if grows else count)

    async def _shrink(
        self, key: Key, memory: Memory, seen: Seen, decision: record.Decision
    ) -> Written | None:
        if not decision.changes or decision.desired >= decision.current:
            # Marks of a step down that is not wanted any more are taken back.
            if decision.deletion_costs:
                await self._scaler.mark(key, seen, decision)
            self._acted_on_wake(key, memory, seen)
            return None
        if self._demand.silent():
            # A gateway is there and says nothing: it may hold requests.
            return None
        if decision.wants_zero:
            return await self._scaler.to_zero(key, memory, seen, lambda: self._decide(key, memory))
        return await self._scaler.shrink(key, memory, seen, decision)

    def _acted_on_wake(self, key: Key, memory: Memory, seen: Seen) -> None:
        if seen.observed.wake:
            annotations = self._world.modelserve(key)["metadata"].get("annotations") or {}
            memory.wake_seen = annotations.get(names.WAKE)

    async def _delete_stuck(self, key: Key, seen: Seen, decision: record.Decision) -> None:
        for pod in await self._scaler.delete_stuck(key, seen, decision.delete_uids):
            broken, why = sightings.is_broken(pod), "is past its progress deadline"
            why = f"does not start ({sightings.trouble(pod)})" if broken else why
            message = f"{pod['metadata']['name']} {why}: deleted, to be replaced"
            self._reporting.emit(key, EventReason.REPLICA_STUCK, message)

    def _share(self, key: Key, seen: Seen, assessment: prediction.Assessment) -> None:
        """Tell the gateways their shares, without waiting for them."""
        snapshots = [view.snapshot for view in seen.gateways]
        wanted = shares.deal(assessment.slots, snapshots, key.namespace, key.name)
        if not wanted:
            return
        task = asyncio.ensure_future(self._demand.share(key.namespace, key.name, wanted))
        self._told.add(task)
        task.add_done_callback(self._told_of)

    def _told_of(self, task: "asyncio.Task[None]") -> None:
        self._told.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("shares were not told: %r", error)

    def _requeue(self, instants_real_s: Iterable[float | None]) -> float | None:
        soonest = min((at for at in instants_real_s if at is not None), default=None)
        if soonest is None:
            return None
        return max(soonest, self._clock.real_s() + SOONEST_REAL_S)


def _revisit_real_s(decision: record.Decision, now: Now) -> float | None:
    """When time alone may change the decision."""
    if decision.revisit_at_s is None:
        return None
    return now.real_s + (decision.revisit_at_s - now.emulated_s) / now.scale


def _old_wake(modelserve: ports.Object, wall_s: float) -> str | None:
    """The wake annotation found at start-up, unless it was just written and nobody acted on it."""
    value = (modelserve["metadata"].get("annotations") or {}).get(names.WAKE)
    written_wall_s = timestamps.parse_if_any(value)
    if written_wall_s is not None and wall_s - written_wall_s < FRESH_WAKE_REAL_S:
        return None
    return value
