"""The emulator process: follows pools, nodes and pods, and plays the kubelet for its own nodes."""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence

from modelserve import ports
from modelserve.adapters import cache, events
from modelserve.api import names
from servelab.engine import metering
from servelab.engine import pool as worker_pool
from servelab.node import figures, rounds, services, tasks
from servelab.node.kubelet import resuming
from servelab.node.machines import (
    addresses,
    custody,
    heartbeat,
    machine,
    machines,
    sharding,
    shards,
)
from servelab.node.pods import podspec, runner, tenants, writes
from servelab.node.pools import keeping, registration

# How long a start waits at most for engines that are to serve again.
RETURN_REAL_S, RETURN_LOOK_REAL_S = 10.0, 0.02


class Emulator:
    """``async with`` starts it: it is ready when nodes stand and their pods go on."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        engines: worker_pool.WorkerPool,
        kubelet: registration.Kubelet,
        numbers: figures.Figures,
        us: shards.Shard | shards.Alone | None = None,
    ) -> None:
        """``us``: this process among others that play nodes of the same cluster."""
        self._us = us or shards.Alone()
        self._cluster = cluster
        self._clock = clock
        self._engines = engines
        self._figures = numbers
        self._rng = random.Random(self._us.identity)
        self._tasks = tasks.Tasks()
        self._addresses = addresses.PodAddresses(seed=self._us.identity)
        self._began = clock.wall_s() - clock.real_s()
        self._pools, self._nodes, self._pods = _stores(cluster)
        self._scaler = events.EventSink(
            cluster, "cluster-autoscaler", clock, per_minute=machines.UNLIMITED
        )
        self._keeper = keeping.PoolKeeper(
            *(cluster, self._pools, self._nodes, kubelet, self.unix_s),
            scale=clock.scale,
            sink=self._scaler,
            ailing=lambda name: self._machines.ailment(name),
        )
        sleep = clock.sleep_real
        shared = services.Services(
            cluster, engines, self._addresses, self.unix_s, sleep, numbers.late, self.may_write
        )
        self._tenants = tenants.Tenants(shared, self._keeper.spec, self._tasks.spawn)
        self._keeper.plays = lambda node: self._custody.ours(node["metadata"]["name"])
        self._keeper.keeps = lambda pool: self._us.keeps(sharding.key_of_pool(pool))
        self._machines: machines.Machines = machines.Machines(
            cluster,
            clock,
            kubelet.host,
            self._pools,
            self._keeper,
            self._tenants,
            self._tasks,
            self.unix_s,
            lambda: self._changed.set(),
            lambda name: self._rounds.images_changed(name),
            writes.Events(shared.writes),
        )
        self._loops: list[asyncio.Task[None]] = []
        self._membership: list[asyncio.Task[None]] = []
        self._custody: custody.Custody = custody.Custody(
            cluster, clock, self._us, self._nodes, self, self._make_beat
        )
        self._rounds: rounds.Rounds = rounds.Rounds(
            cluster, clock, self._keeper, self._pods, self._machines
        )
        self._changed: asyncio.Event = self._rounds.changed

    def unix_s(self) -> float:
        """Unix seconds that never go back: the wall clock at the start, and monotonic from then."""
        return self._began + self._clock.real_s()

    async def __aenter__(self) -> "Emulator":
        stores = (self._pools, self._nodes, self._pods)
        for store in stores:
            self._loops.append(asyncio.create_task(store.run()))
        if isinstance(self._us, shards.Shard):
            self._us.changed = self._members_changed
            self._membership.append(asyncio.create_task(self._us.run()))
            self._loops.append(asyncio.create_task(self._custody.keep()))
            await self._us.joined.wait()
        for store in stores:
            await store.synced.wait()
        self._nodes.on_change(self._node_changed)
        for pod in sorted(self._pods.items(), key=_began):
            self._pod_changed(None, pod)
        self._pods.on_change(self._pod_changed)
        self._pools.on_change(lambda old, new: self._pool_changed())
        kept, told = self._rounds, (self._scaler.run(), self._machines.announce())
        for loop in (kept.keep(), kept.refresh(), kept.collect(), *told):
            self._loops.append(asyncio.create_task(loop))
        await self._engines_back()
        return self

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
        await asyncio.gather(*self._loops, self._tasks.stop(), return_exceptions=True)
        await self._tenants.stop()
        # Nothing of ours writes any more: others may know.
        for task in self._membership:
            task.cancel()
        await asyncio.gather(*self._membership, return_exceptions=True)

    async def run(self) -> None:
        """Wait for ever; raises what a loop of ours died of."""
        loops = [*self._loops, *self._membership]
        done, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
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
        now_s = self.unix_s() * self._clock.scale
        self._figures.count(self._nodes.items(), self._machines.values(), self._tenants, now_s)

    # Nodes.

    def _node_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        self._changed.set()
        name = (new or old or {})["metadata"]["name"]
        known = self._machines.get(name)
        same = known is not None and new is not None and _uid(known.object) == _uid(new)
        if known is not None and not same:
            self._machines.drop(known)
        if not same:
            self._custody.gone(name)
        if new is None:
            return
        if known is not None and same:
            self._machines.update(known, new)
            return
        self._custody.seen(new)

    def _members_changed(self) -> None:
        self._custody.look()
        self._changed.set()

    def _make_beat(self, node: ports.Object) -> heartbeat.Heartbeat:
        name = node["metadata"]["name"]
        late, held = self._figures.lease_late, lambda: self._machines.ailment(name).cut_off
        lost = lambda: self._custody.lost(name)  # noqa: E731
        return heartbeat.Heartbeat(
            *(self._cluster, node, self._clock, late, held, self._us, lost, self._rng)
        )

    def adopt(
        self, node: ports.Object, beat: heartbeat.Heartbeat, pods: Sequence[ports.Object] | None
    ) -> None:
        """Play the node from now on; ``pods`` None: those on it that the watch has told."""
        if not self._machines.take_on(node, beat):
            return
        name = node["metadata"]["name"]
        if pods is None:
            pods = [pod for pod in self._pods.items() if pod["spec"]["nodeName"] == name]
        for pod in sorted(pods, key=_began):
            self._pod_changed(None, pod)
        self._changed.set()

    async def leave(self, name: str) -> None:
        """Another process plays the node from now on, with its pods as they stand."""
        await self._machines.leave(name)

    def _pool_changed(self) -> None:
        self._changed.set()
        for known in self._machines.values():
            self._machines.heed(known)

    # Pods.

    def _pod_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        if old is not None and (new is None or _uid(old) != _uid(new)):
            self._tenants.end(_uid(old))
        if new is None:
            self._changed.set()
            self._addresses.free(_uid(old or {}))
            return
        self._addresses.see(_uid(new), (new.get("status") or {}).get("podIP", ""))
        known = self._tenants.get(_uid(new))
        if known is not None:
            known.hear(new)
            return
        node = self._machines.get(new["spec"]["nodeName"])
        if node is not None:
            self._changed.set()
            self._tenants.take_on(new, node)


def _stores(cluster: ports.Cluster) -> tuple[cache.Store, cache.Store, cache.Store]:
    """Pools, emulated nodes, and pods that have a node."""
    virtual = f"{names.LABEL_VIRTUAL}=true"
    return (
        cache.Store(cluster, ports.GPUPOOLS),
        cache.Store(cluster, ports.NODES, label_selector=virtual, keep_owners=False, alike=True),
        cache.Store(cluster, ports.PODS, field_selector="spec.nodeName!=", keep_owners=False),
    )


def _uid(item: ports.Object) -> str:
    return str(item["metadata"]["uid"])


def _began(pod: ports.Object) -> float:
    """Pods go on in the order in which they began, so that queues of pulls keep theirs."""
    parsed = podspec.parse(pod)
    return resuming.began_real_s(parsed) if resuming.begun(parsed) else float("inf")
