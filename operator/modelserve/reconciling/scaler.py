"""Carries out decisions on the replica count: writes, victims' marks, the hand-shake to zero."""

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from modelserve import errors, ports
from modelserve.api import names, wire
from modelserve.api.keys import Key
from modelserve.decide import record, settle
from modelserve.decide.observation import ReplicaState
from modelserve.reconciling import children
from modelserve.reconciling.memory import Memory
from modelserve.reconciling.observe import Seen
from modelserve.reconciling.world import Uid, World
from modelserve.render import replica_owner

# How often an unknown result is read again before it is left to the next reconcile.
READS = 3
READ_PAUSE_REAL_S = 0.2

_log = logging.getLogger(__name__)

# Look and decide once more, now.
Again = Callable[[], tuple[Seen, record.Decision]]


@dataclass(frozen=True, slots=True)
class Written:
    """A count that was written, and the decision it came from."""

    before: int
    after: int
    decision: record.Decision


class Scaler:
    """Writes counts for one cluster. Methods raise the ClusterError family."""

    def __init__(
        self,
        cluster: ports.Cluster,
        writer: children.Children,
        world: World,
        demand: ports.DemandSource,
        clock: ports.Clock,
    ) -> None:
        self._cluster = cluster
        self._writer = writer
        self._world = world
        self._demand = demand
        self._clock = clock

    async def write(
        self, key: Key, memory: Memory, decision: record.Decision, count: int | None = None
    ) -> Written:
        """Write the decided count, or ``count`` where only the ownership is to change."""
        count = decision.desired if count is None else count
        live = self._world.deployments[key]
        before = replica_owner.live_replicas(live)
        # A foreign writer who came back to our own count has the field, but changed nothing.
        stolen = before == memory.written_count and replica_owner.foreign_managers(live)
        try:
            if decision.force or stolen:
                scale = await self._writer.retake(key, live, count)
            else:
                scale = await self._writer.scale(key, live, count)
        except (errors.Conflict, errors.NotFound):
            await self.refresh(key, live)
            raise
        self._world.note_scale(key, scale)
        memory.written_count = count
        return Written(before, count, decision)

    async def refresh(self, key: Key, stale: ports.Object) -> None:
        """Read the Deployment past the cache, which was wrong about it."""
        try:
            live = await self._cluster.get(ports.DEPLOYMENTS, key.namespace, key.name)
        except errors.NotFound:
            self._world.drop_deployment(stale)
            return
        self._world.put_deployment(live)

    async def shrink(
        self, key: Key, memory: Memory, seen: Seen, decision: record.Decision
    ) -> Written | None:
        """A step down that leaves replicas. None: not yet, something has to be seen first.

        Victims are marked and the marks seen back before the count falls. While a replica serves
        that is not Ready yet nothing shrinks: the ReplicaSet would take that one first.
        """
        if any(r.state is ReplicaState.ADMITTED for r in seen.observed.replicas):
            return None
        if decision.deletion_costs:
            await self.mark(key, seen, decision)
            return None
        return await self.write(key, memory, decision)

    async def mark(self, key: Key, seen: Seen, decision: record.Decision) -> None:
        """Write the pod deletion costs; the watch brings them back."""
        for uid, cost in decision.deletion_costs.items():
            pod = seen.pods.get(Uid(uid))
            if pod is None:
                continue
            # The uid makes it this very pod.
            annotations = {names.POD_DELETION_COST: str(cost)}
            body = {"metadata": {"uid": uid, "annotations": annotations}}
            try:
                await self._cluster.patch(
                    ports.PODS, key.namespace, pod["metadata"]["name"], body, manager=names.MANAGER
                )
            except (errors.NotFound, errors.Conflict):
                self._world.drop_pod(pod)

    async def delete_stuck(self, key: Key, seen: Seen, uids: tuple[str, ...]) -> list[ports.Object]:
        """Delete these pods; the ReplicaSet replaces them. Returns those that were there."""
        deleted = []
        for uid in uids:
            pod = seen.pods.get(Uid(uid))
            if pod is None:
                continue
            try:
                await self._cluster.delete(
                    ports.PODS, key.namespace, pod["metadata"]["name"], uid=uid
                )
            except (errors.NotFound, errors.Conflict):
                self._world.drop_pod(pod)
            else:
                deleted.append(pod)
        return deleted

    async def to_zero(self, key: Key, memory: Memory, seen: Seen, again: Again) -> Written | None:
        """The hand-shake with all gateways, then the write. None: refused, or not yet time."""
        uids = pod_uids(seen)
        now = self._clock.real_s
        memory.settle, acts = settle.begin(memory.settle, uids, uuid.uuid4().hex, now())
        written: Written | None = None
        while acts:
            act, rest = acts[0], acts[1:]
            match act:
                case settle.AskFence(fence_id, fenced):
                    request = wire.FenceRequest(key.namespace, key.name, fence_id, fenced)
                    granted = await self._demand.fence(request)
                    fresh, decision = again()
                    memory.settle, acts = settle.answered(
                        memory.settle, granted, pod_uids(fresh), decision.wants_zero, now()
                    )
                case settle.WriteZero(_, until_real_s):
                    outcome, written = await self._write_zero(key, memory, again, until_real_s)
                    memory.settle, acts = settle.wrote(memory.settle, outcome, now())
                case settle.ReadCount():
                    count = await self._read_count(key)
                    memory.settle, acts = settle.read(memory.settle, count, now())
                    if count is None:
                        return None
                case settle.Unfence(fence_id):
                    await self._demand.unfence(key.namespace, key.name, fence_id)
                    acts = rest
        return written

    async def finish(self, key: Key, memory: Memory) -> None:
        """Clear up a hand-shake that ended without a known result."""
        if not memory.settle.busy:
            return
        count = await self._read_count(key)
        if count is None:
            raise errors.Unavailable(f"the count of Deployment {key} cannot be read")
        fence_id = memory.settle.fence_id
        memory.settle = settle.Settle(refusals=memory.settle.refusals)
        if count:
            await self._demand.unfence(key.namespace, key.name, fence_id)

    async def _write_zero(
        self, key: Key, memory: Memory, again: Again, until_real_s: float
    ) -> tuple[settle.Outcome, Written | None]:
        _, decision = again()
        if not decision.wants_zero:
            return settle.Outcome.FAILED, None
        try:
            async with asyncio.timeout(max(0.0, until_real_s - self._clock.real_s())):
                written = await self.write(key, memory, decision)
        except (TimeoutError, errors.Unavailable) as error:
            _log.warning("whether %s was scaled to zero is not known: %r", key, error)
            return settle.Outcome.UNKNOWN, None
        except errors.ClusterError as error:
            _log.info("%s was not scaled to zero: %s", key, error)
            return settle.Outcome.FAILED, None
        return settle.Outcome.DONE, written

    async def _read_count(self, key: Key) -> int | None:
        for _ in range(READS):
            try:
                live = await self._cluster.get(ports.DEPLOYMENTS, key.namespace, key.name)
            except errors.NotFound:
                return 0
            except errors.ClusterError:
                await self._clock.sleep_real(READ_PAUSE_REAL_S)
                continue
            self._world.put_deployment(live)
            return replica_owner.live_replicas(live)
        return None


def pod_uids(seen: Seen) -> list[str]:
    """The pods a fence must name: all that are not terminating."""
    staying = (r for r in seen.observed.replicas if r.state is not ReplicaState.TERMINATING)
    return [replica.uid for replica in staying]
