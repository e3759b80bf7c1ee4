"""The emulator process: follows pools, nodes and pods, and plays the kubelet for its own nodes."""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence

from modelserve import ports
from modelserve.adapters import cache, events
from modelserve.api import names
from servelab.engine import metering
from servelab.engine import pool as worker_pool
from servelab.node import figures, news, rounds, services
from servelab.node.kubelet import resuming
from servelab.node.machines import (
    addresses,
    custody,
    guarded,
    heartbeat,
    machine,
    machines,
    sharding,
    shards,
)
from servelab.node.pods import podspec, runner, tenants
from servelab.node.pools import keeping, registration

# How long a start waits at most for engines that are to serve again.
RETURN_REAL_S, RETURN_LOOK_REAL_S = 10.0, 0.02
NODE = "node"  # index of pods


class Emulator:
    """``async with`` starts it: it is ready when nodes stand and their pods go on."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        engines: worker_pool.WorkerPool,
        kubelet: registration.Kubelet,
        numbers: figures.Figures,
        us: shards.Membership | None = None,
    ) -> None:
        """``us``: this process among others of the same cluster; left out, the only one."""
        self._us = us or shards.Membership(cluster, clock)
        self._clock = clock
        self._engines = engines
        self._figures = numbers
        self._rng = random.Random(self._us.name)
        guard = guarded.Guarded(cluster, self._us.holds, clock.sleep_real)
        self._addresses = addresses.PodAddresses(seed=self._us.name)
        shared = services.Services(guard, clock, engines, self._addresses, numbers.late)
        self._services, self._news = shared, news.News()
        self._pools, self._nodes, self._pods = _stores(guard)
        self._scaler = events.EventSink(
            guard, "cluster-autoscaler", clock, per_minute=machines.UNLIMITED
        )
        self._keeper = keeping.PoolKeeper(
            guard,
            self._pools,
            self._nodes,
            kubelet,
            shared.unix_s,
            scale=clock.scale,
            sink=self._scaler,
            ailing=lambda name: self._machines.ailment(name),
        )
        self._tenants = tenants.Tenants(shared, self._keeper.spec)
        self._machines = machines.Machines(
            shared, kubelet.host, self._keeper, self._tenants, self._news
        )
        self._custody = custody.Custody(shared, self._us, self._nodes, self, self._make_beat)
        self._keeper.plays = lambda node: self._custody.ours(node["metadata"]["name"])
        self._keeper.keeps = lambda pool: self._us.keeps(sharding.key_of_pool(pool))
        self._rounds = rounds.Rounds(shared, self._keeper, self._pods, self._machines, self._news)
        self._loops: list[asyncio.Task[None]] = []

    def unix_s(self) -> float:
        """See ``Services``."""
        return self._services.unix_s()

    async def __aenter__(self) -> "Emulator":
        # What is read after we are the one is what the one before us wrote last.
        await self._us.__aenter__()
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _start(self) -> None:
        stores = (self._pools, self._nodes, self._pods)
        for store in stores:
            self._loops.append(asyncio.create_task(store.run()))
        self._us.changed = self._members_changed
        for store in stores:
            await store.synced.wait()
        self._nodes.on_change(self._node_changed)
        for pod in sorted(self._pods.items(), key=_began):
            self._pod_changed(None, pod)
        self._pods.on_change(self._pod_changed)
        self._pools.on_change(lambda old, new: self._pool_changed())
        kept, told = self._rounds, (self._scaler.run(), self._machines.announce())
        among = (self._us.run(), self._custody.keep())
        for loop in (kept.keep(), kept.refresh(), kept.collect(), *told, *among):
            self._loops.append(asyncio.create_task(loop))
        await self._engines_back()

    async def _engines_back(self) -> None:
        """Who waits for us to be ready finds engines where they were ready before."""
        for _ in range(int(RETURN_REAL_S / RETURN_LOOK_REAL_S)):
            if not any(found.returning for found in self._tenants):
                return
            await self._clock.sleep_real(RETURN_LOOK_REAL_S)

    async def __aexit__(self, *exception: object) -> None:
        await self._custody.close()
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, self._services.tasks.stop(), return_exceptions=True)
        await self._tenants.stop()
        # Nothing of ours writes any more: others may know.
        await self._us.__aexit__()

    async def run(self) -> None:
        """Wait for ever; raises what a loop of ours died of."""
        done, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    # What others ask.

    def pods(self) -> Iterable[ports.Object]:
        """The pods on our nodes."""
        return [found.pod.raw for found in self._tenants]

    @property
    def scale(self) -> float:
        """Emulated seconds in a real one."""
        return self._clock.scale

    async def sleep_real(self, seconds: float) -> None:
        await self._clock.sleep_real(seconds)

    def served(self) -> Iterable[runner.PodRunner]:
        """The pods on our nodes, with what they are at."""
        return self._tenants

    def served_nodes(self) -> Mapping[str, machine.Machine]:
        """Our nodes by name."""
        return self._machines

    async def loads(self) -> Mapping[str, metering.Load]:
        """What engines have done so far, by the names that they have in the pool."""
        return await self._engines.loads()

    def dial(self, engine: str, port: int = 0) -> str:
        """Where the engine of that key listens, or a port beside its main one; empty if nowhere."""
        return self._engines.dial(engine, port)

    def may_write(self, node: str) -> bool:
        """Whether that node, and what is on it, is ours to write for now."""
        return self._custody.ours(node)

    def lookup(self, namespace: str, name: str) -> runner.PodRunner | None:
        """The pod of that name on one of our nodes."""
        found = self._tenants
        matching = (r for r in found if r.pod.namespace == namespace and r.pod.name == name)
        return next(matching, None)

    def engine_logged(self, uid: str, line: str) -> None:
        """An engine wrote a line."""
        found = self._tenants.of_engine(uid)
        if found is not None:
            found.wrote(uid, line)

    def engine_exited(self, uid: str, code: int) -> None:
        """An engine went with its worker process."""
        self._figures.engine_exited()
        found = self._tenants.of_engine(uid)
        if found is not None:
            found.exited(uid, code)

    def count(self) -> None:
        """Bring the metrics up to date."""
        played, now_s = self._machines.values(), self._services.now_s()
        self._figures.count(self._nodes.items(), played, self._tenants, now_s)

    # Nodes.

    def _node_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        self._news.tell()
        name = (new or old or {})["metadata"]["name"]
        known = self._machines.get(name)
        before = old if known is None else known.object
        if new is None or (before is not None and _uid(before) != _uid(new)):
            if known is not None:
                self._machines.drop(known)
                known = None
            self._custody.gone(name)
        if new is None:
            return
        if known is not None:
            self._machines.update(known, new)
        else:
            self._custody.seen(new)

    def _members_changed(self) -> None:
        self._custody.look()
        self._news.tell()

    def _make_beat(self, node: ports.Object) -> heartbeat.Heartbeat:
        name = node["metadata"]["name"]
        return heartbeat.Heartbeat(
            self._services.cluster,
            node,
            self._clock,
            late=self._figures.lease_late,
            held=lambda: self._machines.ailment(name).cut_off,
            us=self._us,
            lost=lambda: self._custody.lost(name),
            rng=self._rng,
        )

    def adopt(
        self, node: ports.Object, beat: heartbeat.Heartbeat, pods: Sequence[ports.Object]
    ) -> None:
        """Play the node from now on, with these pods and those that the watch has told."""
        if not self._machines.take_on(node, beat):
            return
        name = node["metadata"]["name"]
        told = self._pods.by_index(NODE, name)
        newest = {_uid(pod): pod for pod in sorted((*pods, *told), key=ports.resource_version)}
        for pod in sorted(newest.values(), key=_began):
            self._pod_changed(None, pod)
        self._news.tell()

    async def leave(self, name: str) -> None:
        """Another process plays the node from now on, with its pods as they stand."""
        await self._machines.leave(name)

    def _pool_changed(self) -> None:
        self._news.tell()
        for known in self._machines.values():
            self._machines.heed(known)

    # Pods.

    def _pod_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        if old is not None and (new is None or _uid(old) != _uid(new)):
            if self._tenants.end(_uid(old)) is None:
                self._addresses.free(_uid(old))
            self._custody.pod_ended(old["spec"]["nodeName"], _uid(old))
        if new is None:
            self._news.tell()
            return
        self._addresses.see(_uid(new), (new.get("status") or {}).get("podIP", ""))
        known = self._tenants.get(_uid(new))
        if known is not None:
            known.hear(new)
            return
        node = self._machines.get(new["spec"]["nodeName"])
        if node is not None:
            self._news.tell()
            self._tenants.take_on(new, node)


def _stores(cluster: ports.Cluster) -> tuple[cache.Store, cache.Store, cache.Store]:
    """Pools, emulated nodes, and pods that have a node."""
    virtual = f"{names.LABEL_VIRTUAL}=true"
    return (
        cache.Store(cluster, ports.GPUPOOLS),
        cache.Store(cluster, ports.NODES, label_selector=virtual, keep_owners=False, alike=True),
        cache.Store(
            cluster,
            ports.PODS,
            field_selector="spec.nodeName!=",
            keep_owners=False,
            indexes={NODE: lambda pod: [pod["spec"]["nodeName"]]},
        ),
    )


def _uid(item: ports.Object) -> str:
    return str(item["metadata"]["uid"])


def _began(pod: ports.Object) -> float:
    """Pods go on in the order in which they began, so that queues of pulls keep theirs."""
    parsed = podspec.parse(pod)
    return resuming.began_real_s(parsed) if resuming.begun(parsed) else float("inf")
