"""The emulator process: follows pools, nodes and pods, and plays the kubelet for its own nodes."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from modelserve import errors, ports
from modelserve.adapters import cache, events
from modelserve.api import names
from servelab.engine import pool as worker_pool
from servelab.node import (
    addresses,
    admission,
    figures,
    heartbeat,
    links,
    machine,
    podspec,
    pools,
    registration,
    resume,
    runner,
)
from servelab.timing import routes

log = logging.getLogger(__name__)

# A kubelet posts its node's status at least this often.
STATUS_PERIOD_REAL_S = 300.0
# Changes that come close together are taken together.
GATHER_REAL_S = 0.05
RETRY_REAL_S = 1.0
# A kubelet's events have their own filter (see ``spam``).
UNLIMITED = 1_000_000


class Emulator:
    """``async with`` starts it: it is ready when nodes stand and their pods go on."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        engines: worker_pool.WorkerPool,
        kubelet: registration.Kubelet,
        numbers: figures.Figures,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._kubelet = kubelet
        self._figures = numbers
        self._began = clock.wall_s() - clock.real_s()
        self._pools = cache.Store(cluster, ports.GPUPOOLS)
        self._nodes = cache.Store(
            cluster, ports.NODES, label_selector=f"{names.LABEL_VIRTUAL}=true"
        )
        self._pods = cache.Store(cluster, ports.PODS, field_selector="spec.nodeName!=")
        self._keeper = pools.PoolKeeper(cluster, self._pools, self._nodes, kubelet, self.unix_s)
        self._services = runner.Services(
            cluster, engines, addresses.PodAddresses(), self.unix_s, numbers.phase_late
        )
        self._links = links.Links(self._end_moved)
        self._machines: dict[str, machine.Machine] = {}
        self._runners: dict[str, runner.PodRunner] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._beats: dict[str, list[asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._dirty_images: set[str] = set()

    def unix_s(self) -> float:
        """Unix seconds that never go back: the wall clock at the start, and monotonic from then."""
        return self._began + self._clock.real_s()

    async def __aenter__(self) -> "Emulator":
        stores = (self._pools, self._nodes, self._pods)
        for store in stores:
            self._loops.append(asyncio.create_task(store.run()))
        for store in stores:
            await store.synced.wait()
        self._nodes.on_change(self._node_changed)
        for pod in sorted(self._pods.items(), key=_began):
            self._pod_changed(None, pod)
        self._pods.on_change(self._pod_changed)
        self._pools.on_change(lambda old, new: self._changed.set())
        for loop in (self._reconcile(), self._refresh()):
            self._loops.append(asyncio.create_task(loop))
        return self

    async def __aexit__(self, *exception: object) -> None:
        beats = (task for tasks in self._beats.values() for task in tasks)
        tasks = [*self._loops, *self._tasks, *beats]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(found.stop() for found in self._runners.values()))

    async def run(self) -> None:
        """Wait for ever; raises what a loop of ours died of."""
        done, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    # What others ask.

    def pods(self) -> Iterable[ports.Object]:
        """The pods on our nodes."""
        return [found.pod.raw for found in self._runners.values()]

    def lookup(self, namespace: str, name: str) -> runner.PodRunner | None:
        """The pod of that name on one of our nodes."""
        found = self._runners.values()
        matching = (r for r in found if r.pod.namespace == namespace and r.pod.name == name)
        return next(matching, None)

    def engine_logged(self, uid: str, line: str) -> None:
        """An engine wrote a line."""
        if uid in self._runners:
            self._runners[uid].logged(line)

    def engine_exited(self, uid: str, code: int) -> None:
        """An engine went with its worker process."""
        self._figures.engine_exited()
        if uid in self._runners:
            self._runners[uid].exited(code)

    def count(self) -> None:
        """Bring the metrics up to date."""
        by_pool: dict[str, int] = {}
        for node in self._nodes.items():
            pool = node["metadata"]["labels"].get(names.LABEL_POOL, "")
            by_pool[pool] = by_pool.get(pool, 0) + 1
        phases = (pod.get("status", {}).get("phase", "Pending") for pod in self.pods())
        self._figures.count(by_pool, phases)

    # Nodes.

    def _node_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        self._changed.set()
        name = (new or old or {})["metadata"]["name"]
        known = self._machines.get(name)
        same = known is not None and new is not None and _uid(known.object) == _uid(new)
        if known is not None and not same:
            self._drop(known)
        if new is None:
            return
        if known is not None and same:
            with contextlib.suppress(errors.InputError):
                known.update(new)
            return
        self._adopt(new)

    def _adopt(self, node: ports.Object) -> None:
        meta = node["metadata"]
        name = meta["name"]
        spec = self._keeper.spec(meta["labels"].get(names.LABEL_POOL, ""))
        try:
            facts = machine.read_facts(node)
        except (errors.InputError, KeyError) as error:
            log.error("node %s cannot be emulated: %s", name, error)
            return
        serialize = spec is None or spec.kubelet.serialize_image_pulls
        moves, scale = self._links.of(name), self._clock.scale
        host = machine.make_host(node, self._kubelet.host, scale, moves, serialize=serialize)
        sink = events.EventSink(
            self._cluster, "kubelet", self._clock, host=name, per_minute=UNLIMITED
        )
        self._machines[name] = machine.Machine(
            node, facts, host, moves, sink, lambda: self._images_changed(name)
        )
        beat = heartbeat.Heartbeat(self._cluster, node, self._clock, self._figures.lease_late)
        self._beats[name] = [self._task(beat.run()), self._task(sink.run())]
        for pod in sorted(self._pods.items(), key=_began):
            if pod["spec"]["nodeName"] == name:
                self._pod_changed(None, pod)

    def _drop(self, known: machine.Machine) -> None:
        """The node is gone: the machine is off, and so is everything on it."""
        self._machines.pop(known.name, None)
        for task in self._beats.pop(known.name, ()):
            task.cancel()
        on_it = [uid for uid, found in self._runners.items() if found.node is known]
        self._spawn(self._close(known, [self._end(uid) for uid in on_it]))

    async def _close(self, known: machine.Machine, ends: list[asyncio.Task[None] | None]) -> None:
        """Once nothing of it lives, its links go; the pool's with its last node."""
        await asyncio.gather(*(end for end in ends if end is not None), return_exceptions=True)
        known.links.close(self.unix_s() * self._clock.scale)
        pool = known.facts.pool
        if all(other.facts.pool != pool for other in self._machines.values()):
            self._links.drop(routes.backend(pool))
            self._links.drop(routes.registry(pool))

    def _images_changed(self, name: str) -> None:
        self._dirty_images.add(name)
        self._changed.set()

    # Pods.

    def _pod_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        if old is not None and (new is None or _uid(old) != _uid(new)):
            self._end(_uid(old))
        if new is None:
            self._changed.set()
            return
        known = self._runners.get(_uid(new))
        if known is not None:
            known.see(podspec.parse(new))
            return
        node = self._machines.get(new["spec"]["nodeName"])
        if node is not None:
            self._changed.set()
            self._take_on(new, node)

    def _take_on(self, pod: ports.Object, node: machine.Machine) -> None:
        parsed = podspec.parse(pod)
        try:
            rejection = None if resume.begun(parsed) else self._admit(pod, node)
            found = runner.PodRunner(parsed, node, self._services, rejection)
        except errors.ModelServeError as error:
            log.error("pod %s cannot be run: %s", pod["metadata"]["name"], error)
            return
        self._runners[_uid(pod)] = found
        found.start()

    def _admit(self, pod: ports.Object, node: machine.Machine) -> admission.Rejection | None:
        others = [found.pod.raw for found in self._runners.values() if found.node is node]
        return admission.admit(pod, node.object, others)

    def _end(self, uid: str) -> asyncio.Task[None] | None:
        found = self._runners.pop(uid, None)
        return None if found is None else self._spawn(found.gone())

    def _end_moved(self, key: str) -> None:
        """A transfer of that key ends at another time than its pod was told."""
        uid = key.split("/")[2]
        if uid in self._runners:
            self._runners[uid].moved()

    # Loops.

    async def _reconcile(self) -> None:
        while True:
            await self._changed.wait()
            await self._clock.sleep_real(GATHER_REAL_S)
            self._changed.clear()
            try:
                await self._keeper.reconcile(self._pods.items())
                await self._write_images()
            except errors.ClusterError as error:
                log.warning("nodes: %s", error)
                await self._clock.sleep_real(RETRY_REAL_S)
                self._changed.set()

    async def _write_images(self) -> None:
        while self._dirty_images:
            name = self._dirty_images.pop()
            try:
                await self._post(name)
            except errors.ClusterError:
                self._dirty_images.add(name)
                raise

    async def _refresh(self) -> None:
        while True:
            await self._clock.sleep_real(STATUS_PERIOD_REAL_S)
            for name, known in list(self._machines.items()):
                known.host.images.settle(self.unix_s() * self._clock.scale)
                with contextlib.suppress(errors.ClusterError):
                    await self._post(name)

    async def _post(self, name: str) -> None:
        known = self._machines.get(name)
        if known is not None:
            await self._keeper.refresh(known.object, known.host.images.listing())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """One whose failure concerns one pod or node: it is told, and the others go on."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._tell)
        return task

    def _tell(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of the emulator failed", exc_info=task.exception())


@contextlib.asynccontextmanager
async def running(
    cluster: ports.Cluster,
    clock: ports.Clock,
    workers: int,
    kubelet: registration.Kubelet,
    numbers: figures.Figures,
) -> AsyncIterator[Emulator]:
    """The emulator with its engine workers. Raises SetUpError, ClusterError."""
    holder: list[Emulator] = []

    def ask(method: Callable[[Emulator], Callable[..., None]]) -> Callable[..., None]:
        return lambda *arguments: method(holder[0])(*arguments) if holder else None

    engines = worker_pool.WorkerPool(
        workers,
        clock.scale,
        on_log=ask(lambda emulator: emulator.engine_logged),
        on_exit=ask(lambda emulator: emulator.engine_exited),
    )
    holder.append(Emulator(cluster, clock, engines, kubelet, numbers))
    await engines.start()
    try:
        async with holder[0]:
            yield holder[0]
    finally:
        await engines.stop()


def _uid(item: ports.Object) -> str:
    return str(item["metadata"]["uid"])


def _began(pod: ports.Object) -> float:
    """Pods go on in the order in which they began, so that queues of pulls keep theirs."""
    parsed = podspec.parse(pod)
    return resume.began_real_s(parsed) if resume.begun(parsed) else float("inf")
