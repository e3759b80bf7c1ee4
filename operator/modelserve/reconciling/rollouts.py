"""Brings Deployment and Service to what the spec asks for, the replica count left aside."""

from dataclasses import dataclass
from typing import Any

from modelserve import errors, ports
from modelserve.api import spec as specs
from modelserve.api.keys import Key
from modelserve.decide import prediction
from modelserve.decide.observation import ReplicaState
from modelserve.reconciling import children
from modelserve.reconciling.memory import Memory
from modelserve.reconciling.observe import Seen
from modelserve.reconciling.world import World
from modelserve.render import deployment as deployments
from modelserve.render import labels, replica_owner, resolved, service

DEPLOYMENT = ports.DEPLOYMENTS.kind
SERVICE = ports.SERVICES.kind
TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class Pace:
    """How a rollout goes: replicas above the count, and without surge how many may be missing."""

    surge: int
    unavailable: int = 1


class Rollouts:
    """Applies children when their document or the live object has changed, else does nothing."""

    def __init__(
        self, writer: children.Children, world: World, cluster: ports.Cluster, time_scale: float
    ) -> None:
        self._writer = writer
        self._world = world
        self._cluster = cluster
        self._time_scale = time_scale

    async def ensure(
        self,
        key: Key,
        memory: Memory,
        spec: specs.ModelServeSpec,
        assessment: prediction.Assessment,
        seen: Seen,
    ) -> ports.Object:
        """The live Deployment, created or updated. Raises ClusterError, ForeignObject."""
        modelserve = self._world.modelserve(key)
        live = self._world.deployments.get(key)
        wanted = resolved.digest(key.name, spec)
        frozen = resolved.frozen(live, wanted) or resolved.resolve(key.name, spec, assessment)
        if live is None or not labels.owned_by(live, modelserve):
            live = await self._create(key, modelserve, spec, frozen)
        else:
            live = await self._update(key, memory, modelserve, spec, frozen, live, seen)
        await self._ensure_service(key, memory, modelserve)
        return live

    async def _create(
        self,
        key: Key,
        modelserve: ports.Object,
        spec: specs.ModelServeSpec,
        frozen: resolved.Resolved,
    ) -> ports.Object:
        plan = deployments.Rollout(replicas=0, surge=1)
        rendered = deployments.render(modelserve, spec, frozen, plan, self._time_scale)
        try:
            live = await self._writer.create_deployment(key, rendered)
        except errors.Conflict:
            # It is there: our view is behind, or somebody took its labels, or it is an orphan.
            live = await self._cluster.get(ports.DEPLOYMENTS, key.namespace, key.name)
            rendered = self._render(modelserve, spec, frozen, live, live_pace(live))
            live = await self._writer.apply_deployment(key, live, rendered)
        self._world.put_deployment(live)
        return live

    async def _update(
        self,
        key: Key,
        memory: Memory,
        modelserve: ports.Object,
        spec: specs.ModelServeSpec,
        frozen: resolved.Resolved,
        live: ports.Object,
        seen: Seen,
    ) -> ports.Object:
        applied = memory.applied
        rendered = self._render(modelserve, spec, frozen, live, live_pace(live))
        template = children.rendered_digest(rendered["spec"]["template"])
        before = applied.rendered.get(TEMPLATE)
        # An operator that has just started knows of no template before: what is in force stays.
        starts = before is not None and template != before
        pace = choose_pace(live, seen, spec.gpu.tensor_parallel, starts=starts)
        rendered = self._render(modelserve, spec, frozen, live, pace)
        ours, theirs = children.rendered_digest(rendered), children.live_digest(live)
        if applied.rendered.get(DEPLOYMENT) == ours and applied.live.get(DEPLOYMENT) == theirs:
            return live
        live = await self._writer.apply_deployment(key, live, rendered)
        self._world.put_deployment(live)
        applied.rendered[DEPLOYMENT], applied.live[DEPLOYMENT] = ours, children.live_digest(live)
        applied.rendered[TEMPLATE] = template
        return live

    def _render(
        self,
        modelserve: ports.Object,
        spec: specs.ModelServeSpec,
        frozen: resolved.Resolved,
        live: ports.Object,
        pace: Pace,
    ) -> dict[str, Any]:
        replicas, uid = replica_owner.replicas_to_apply(live), live["metadata"]["uid"]
        plan = deployments.Rollout(replicas, pace.surge, uid, pace.unavailable)
        return deployments.render(modelserve, spec, frozen, plan, self._time_scale)

    async def _ensure_service(self, key: Key, memory: Memory, modelserve: ports.Object) -> None:
        rendered = service.render(modelserve)
        ours = children.rendered_digest(rendered)
        if memory.applied.rendered.get(SERVICE) == ours:
            return
        await self._writer.apply_service(key, rendered)
        memory.applied.rendered[SERVICE] = ours


def choose_pace(live: ports.Object, seen: Seen, gpus: int, *, starts: bool) -> Pace:
    """Surge 1: a new replica comes before an old one goes; 0: no GPUs for that.

    Settled when a rollout starts, by the GPUs that are free then. Under way the surge only ever
    turns to 0, when a new replica finds no place: the new one may itself have taken the last free
    GPUs. Replicas with no place to come are missing anyway: one more may be, else none could go.
    """
    unplaced, lost = _without_place(seen, gpus)
    if starts:
        return Pace(1) if seen.most_free_gpus >= gpus else Pace(0, 1 + lost)
    now = live_pace(live)
    if not seen.observed.rollout_in_progress or not unplaced:
        return now
    return Pace(0, max(now.unavailable, 1 + lost))


def _without_place(seen: Seen, gpus: int) -> tuple[int, int]:
    """Replicas without a node: all, and those that neither free nor leaving GPUs are enough for."""
    states = [replica.state for replica in seen.observed.replicas]
    unplaced = states.count(ReplicaState.UNSCHEDULABLE)
    coming = states.count(ReplicaState.TERMINATING) + int(seen.most_free_gpus // gpus)
    return unplaced, max(0, unplaced - coming)


def live_pace(live: ports.Object) -> Pace:
    """The pace in force; the server's own default counts as a surge of 1."""
    rolling = live["spec"].get("strategy", {}).get("rollingUpdate") or {}
    if rolling.get("maxSurge") != 0:
        return Pace(1)
    unavailable = rolling.get("maxUnavailable")
    return Pace(0, unavailable if isinstance(unavailable, int) and unavailable > 0 else 1)
