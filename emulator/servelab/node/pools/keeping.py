"""Keeps the Nodes that GPUPools ask for, and the pools' status."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import pydantic

from modelserve import errors, ports
from modelserve.adapters import cache
from modelserve.api import names
from modelserve.api.pool import GPUPoolSpec, PoolDrain
from modelserve.catalog import gpus
from servelab.node import together
from servelab.node.faults import ailments as faulty
from servelab.node.pools import draining, growth, poolstatus, possible, registration, upkeep
from servelab.node.pools.growth import NEVER

log = logging.getLogger(__name__)


class PoolKeeper:
    """Level-triggered: ``reconcile`` brings every pool to what it asks for; call it at changes.

    ``sink`` hears what a cluster autoscaler would say. Emulated seconds are real ones × ``scale``.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        pools: cache.Store,
        nodes: cache.Store,
        kubelet: registration.Kubelet,
        unix_s: Callable[[], float],
        *,
        scale: float = 1.0,
        sink: ports.EventSink | None = None,
        ailing: Callable[[str], faulty.Ailment] = lambda name: faulty.WELL,
    ) -> None:
        self._cluster = cluster
        self._pools = pools
        self._nodes = nodes
        self._unix_s = unix_s
        self._upkeep = upkeep.Upkeep(cluster, kubelet, unix_s)
        self._upkeep.ailing = ailing
        self._scale = scale
        self._sink = sink
        self._drainer = draining.Drainer(cluster, sink)
        self._taker = draining.Drainer(cluster, taint=draining.SPOT_TAINT)
        # Whether a pool is ours to keep and a node ours to play, where several processes do both.
        self.keeps: Callable[[str], bool] = lambda pool: True
        self.plays: Callable[[ports.Object], bool] = lambda node: True
        self._read: dict[str, tuple[ports.Object, GPUPoolSpec | None]] = {}  # pools as last read
        self._growths: dict[str, growth.Growth] = {}
        self._seen: set[str] = set()  # nodes of ours that stood once
        self._standing: set[str] = set()  # nodes that should be there, by the last look

    @property
    def elastic(self) -> bool:
        """Whether any pool grows by itself, so that pods without a node matter."""
        specs = (self.spec(pool["metadata"]["name"]) for pool in self._pools.items())
        return any(spec is not None and spec.elastic is not None for spec in specs)

    @property
    def remembered(self) -> int:
        """How many pools and nodes something is remembered of, those that are gone too."""
        return len(self._read) + len(self._growths) + len(self._seen) + self._upkeep.remembered

    def pool(self, name: str) -> ports.Object | None:
        """The pool, if there is one of that name."""
        return self._pools.get(None, name)

    def spec(self, pool_name: str) -> GPUPoolSpec | None:
        """The pool's spec; None if there is no such pool or it cannot be read."""
        found = self.pool(pool_name)
        if found is None:
            return None
        known = self._read.get(pool_name)
        if known is None or known[0] is not found:
            known = self._read[pool_name] = found, _parsed(found)
        return known[1]

    async def reclaim(self, node: ports.Object, notice_s: float) -> None:
        """The cloud takes a spot machine back when the notice, emulated seconds, is over."""
        await self._taker.begin(node, self._unix_s(), notice_s / self._scale)

    async def reconcile(self, pods: Iterable[ports.Object]) -> float:
        """Create, change and remove nodes; write the status. Raises ClusterError.

        ``pods`` are those on our nodes and, for elastic pools, those without one. Returns the Unix
        time at which to come again if nothing changes; infinite if there is no need.
        """
        known, due_s = tuple(pods), NEVER
        self._standing = set()
        standing = [pool for pool in self._pools.items() if not _deleted(pool)]
        for owner in standing:
            try:
                due_s = min(due_s, await self._keep(owner, known))
            except (errors.Invalid, errors.InputError) as error:
                # Something of it that no check of ours knows; the other pools stand all the same.
                await self._refuse(owner, str(error))
        due_s = min(due_s, await self._dissolve({_name(pool) for pool in standing}, known))
        await self._bury(known)
        return due_s

    async def refresh(
        self,
        node: ports.Object,
        images: list[dict[str, Any]],
        annotations: Mapping[str, str | None] | None = None,
    ) -> None:
        """Write a node's status: heartbeat, images, kubelet address; and those annotations."""
        spec = self.spec(node["metadata"]["labels"].get(names.LABEL_POOL, ""))
        if spec is None:
            return
        # The pool may have been changed to one that cannot be; its status says so.
        with contextlib.suppress(errors.InputError):
            gpu = gpus.find(spec.gpu)
            await self._upkeep.refresh(node, spec, gpu, images, annotations or {})

    async def _keep(self, owner: ports.Object, pods: Sequence[ports.Object]) -> float:
        name = owner["metadata"]["name"]
        try:
            spec, gpu = possible.read(owner)
        except errors.InputError as error:
            self._standing |= {node["metadata"]["name"] for node in self._of_pool(name)}
            if not self.keeps(name):
                return NEVER
            await self._refuse(owner, str(error))
            return NEVER
        due_s = NEVER
        wanted: dict[str, float | None] = dict.fromkeys(registration.node_names(name, spec))
        if not self.keeps(name):
            self._growths.pop(name, None)
            there = [node["metadata"]["name"] for node in self._of_pool(name)]
            self._standing |= {*wanted, *there}
            return await self._correct(owner, spec, gpu, there)
        if spec.elastic is not None:
            coming, due_s = await self._grow(owner, spec, gpu, pods)
            wanted |= coming
        self._standing |= set(wanted)
        growing = self._growths[name] if spec.elastic is not None else growth.Growth()
        new = {each: at for each, at in wanted.items() if self._nodes.get(None, each) is None}
        await together.gather(
            self._upkeep.create(owner, spec, each, gpu, at) for each, at in new.items()
        )
        due_s = min([due_s, *(at for at in new.values() if at is not None)])
        due_s = min(due_s, await self._correct(owner, spec, gpu, wanted))
        due_s = min(due_s, await self._shrink(name, set(wanted), pods, spec.drain))
        nodes = self._of_pool(name)
        idle = growing.spared(spec, len(nodes))
        report = poolstatus.kept(
            owner,
            spec,
            gpu,
            nodes,
            len(wanted),
            growing.booting,
            idle,
            pods,
            self._unix_s(),
        )
        await self._write_status(report, owner)
        return due_s

    async def _correct(
        self, owner: ports.Object, spec: GPUPoolSpec, gpu: gpus.Gpu, wanted: Iterable[str]
    ) -> float:
        """Bring those nodes that we play to what the pool says; returns when to look again."""
        pool = owner["metadata"]["name"]
        usable = growth.usable(self._of_pool(pool))
        there = (self._nodes.get(None, each) for each in wanted)
        found = [node for node in there if node is not None]
        ours = [
            node
            for node in found
            if node["metadata"]["labels"].get(names.LABEL_POOL) == pool and self.plays(node)
        ]
        wrong = [node for node in ours if not self._upkeep.is_right(owner, spec, node, usable)]
        work = (self._upkeep.correct(owner, spec, node, gpu, usable) for node in wrong)
        due_s: list[float] = await together.gather(work)
        return min([NEVER, *due_s])

    async def _grow(
        self,
        owner: ports.Object,
        spec: GPUPoolSpec,
        gpu: gpus.Gpu,
        pods: Sequence[ports.Object],
    ) -> tuple[dict[str, float | None], float]:
        """The nodes of an elastic pool, with the time of their GPUs if those are still to come."""
        name = owner["metadata"]["name"]
        state = self._growths.setdefault(
            name, growth.Growth(poolstatus.booting(owner), poolstatus.idle(owner))
        )
        nodes, now_s = self._of_pool(name), self._unix_s()
        plan = state.plan(name, spec, gpu, nodes, pods, now_s, self._scale)
        by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
        for told in plan.told:
            if self._sink is not None:
                subject = {"apiVersion": "v1", "kind": "Pod", **by_uid[told.pod]}
                self._sink.emit(subject, "Normal", told.reason, told.message)
        return state.standing(name, spec, plan, nodes, pods), plan.due_s

    async def _shrink(
        self,
        name: str,
        wanted: Set[str],
        pods: Sequence[ports.Object],
        drain: PoolDrain | None = None,
    ) -> float:
        """Drain the nodes that are not wanted; returns when to look at them again.

        ``drain`` is what the pool says; where it is gone, its nodes do.
        """
        now_s, soon_s = self._unix_s(), NEVER
        for node in self._of_pool(name):
            node_name = _name(node)
            going = draining.gone_at_s(node) is not None
            spot = draining.is_reclaimed(node)
            if node_name in wanted and going and not spot:
                await self._drainer.give_up(node)
            if (node_name in wanted and not spot) or _deleted(node):
                continue
            if not going:
                notice_s = drain.notice_seconds if drain else draining.notice_s(node)
                await self._drainer.begin(node, now_s, notice_s / self._scale)
            on_it = (pod for pod in pods if pod["spec"].get("nodeName") == node_name)
            drainer = self._taker if spot else self._drainer
            if not going or not await drainer.go_on(node, on_it, now_s):
                soon_s = now_s + draining.SETTLE_REAL_S
        return soon_s

    async def _dissolve(self, standing: Set[str], pods: Sequence[ports.Object]) -> float:
        """Drain the nodes of pools that are gone; returns when to look at them again."""
        for name in self._growths.keys() - standing:
            del self._growths[name]
        for name in self._read.keys() - standing:
            del self._read[name]
        told = (node["metadata"]["labels"].get(names.LABEL_POOL) for node in self._nodes.items())
        due_s = NEVER
        for name in sorted({name for name in told if name and self.keeps(name)} - standing):
            due_s = min(due_s, await self._shrink(name, frozenset(), pods))
        return due_s

    async def _bury(self, pods: Iterable[ports.Object]) -> None:
        """Pods whose machine is gone for good go as well."""
        there = {node["metadata"]["name"] for node in self._nodes.items()}
        lost = self._seen - there - self._standing
        # Others of the same name may stand where some have gone.
        if lost or self._upkeep.remembered > len(there):
            self._upkeep.keep({node["metadata"]["uid"] for node in self._nodes.items()})
        on_them = [pod for pod in pods if pod["spec"].get("nodeName") in lost]
        await self._drainer.lost(on_them)
        self._seen = (self._seen | there) - lost

    def _of_pool(self, name: str) -> list[ports.Object]:
        found = self._nodes.items()
        return [n for n in found if n["metadata"]["labels"].get(names.LABEL_POOL) == name]

    async def _refuse(self, owner: ports.Object, why: str) -> None:
        await self._write_status(poolstatus.refused(owner, why, self._unix_s()), owner)

    async def _write_status(self, body: Mapping[str, Any], owner: ports.Object) -> None:
        if body == (owner.get("status") or {}):
            return
        name = owner["metadata"]["name"]
        try:
            await self._cluster.patch(
                ports.GPUPOOLS, None, name, {"status": dict(body)}, subresource="status"
            )
        except errors.NotFound:
            log.debug("pool %s is gone", name)


def _name(item: ports.Object) -> str:
    return str(item["metadata"]["name"])


def _parsed(pool: ports.Object) -> GPUPoolSpec | None:
    try:
        return GPUPoolSpec.model_validate(pool["spec"])
    except pydantic.ValidationError:
        return None


def _deleted(item: ports.Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))
