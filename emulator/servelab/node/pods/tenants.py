"""The pods on the nodes that this process plays: takes them on, tells them news, sees them off."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator

from modelserve import errors, ports
from modelserve.api import names
from modelserve.api.pool import GPUPoolSpec
from servelab.node.gpus import slots
from servelab.node.kubelet import resuming
from servelab.node.machines import machine
from servelab.node.pods import claiming, podspec, runner
from servelab.node.rules import admission
from servelab.node.services import Services

log = logging.getLogger(__name__)

MOVED_REAL_S = 0.01  # pods that start at once move each other's ends, and hear of it once
Task = asyncio.Task[None]


class Tenants:
    """Of all nodes. ``spec`` gives a pool's.

    A pod whose object is gone is none any more: others have its GPUs and its room from then on, as
    with a kubelet, though its containers may still be ending.
    """

    def __init__(self, services: Services, spec: Callable[[str], GPUPoolSpec | None]) -> None:
        self._services = services
        self._spec = spec
        self._spawn = services.tasks.spawn
        self._by_uid: dict[str, runner.PodRunner] = {}
        self._by_node: dict[str, dict[str, runner.PodRunner]] = {}
        self._ending: dict[str, tuple[runner.PodRunner, Task]] = {}
        self._moved: set[str] = set()

    def __iter__(self) -> Iterator[runner.PodRunner]:
        return iter(self._by_uid.values())

    def get(self, uid: str) -> runner.PodRunner | None:
        return self._by_uid.get(uid)

    def of_engine(self, key: str) -> runner.PodRunner | None:
        """The pod of an engine that has this key in the worker processes."""
        uid = key.partition("/")[0]
        ending = self._ending.get(uid)
        return self._by_uid.get(uid) if ending is None else ending[0]

    def on(self, node: str) -> Collection[runner.PodRunner]:
        """Those on the node of that name."""
        return tuple(self._by_node.get(node, {}).values())

    def running(self, node: str) -> Collection[runner.PodRunner]:
        """The same, and those that are still ending there."""
        return (*self.on(node), *(found for found, _ in self._ending_on(node)))

    def take_on(self, pod: ports.Object, node: machine.Machine) -> None:
        """A pod that is new to us is on one of our nodes."""
        parsed = podspec.parse(pod)
        try:
            rejection = None if resuming.begun(parsed) else self._admit(pod, node)
            found = runner.PodRunner(parsed, node, self._services, rejection)
        except errors.ModelServeError as error:
            log.error("pod %s cannot be run: %s", pod["metadata"]["name"], error)
            return
        self._by_uid[parsed.uid] = found
        self._by_node.setdefault(node.name, {})[parsed.uid] = found
        found.start()
        if rejection is None:
            self._spawn(self._give(found, node))

    def end(self, uid: str) -> Task | None:
        """The pod's object is gone."""
        found = self._forget(uid)
        if found is None:
            return None
        found.node.given.by_pod.pop(uid, None)
        end = self._spawn(found.gone())
        self._ending[uid] = found, end
        end.add_done_callback(lambda _: self._ending.pop(uid))
        return end

    def end_all(self, node: str) -> list[Task]:
        """The node is gone with all its pods, and they at once."""
        for found in self.on(node):
            self.end(found.pod.uid)
        return self._cut_short(node)

    async def leave_all(self, node: str) -> None:
        """Another process goes on with the node's pods; with those that are ending none does."""
        left = [self._forget(found.pod.uid) for found in self.on(node)]
        leaving = (found.leave() for found in left if found is not None)
        await asyncio.gather(*leaving, *self._cut_short(node), return_exceptions=True)

    def _ending_on(self, node: str) -> list[tuple[runner.PodRunner, Task]]:
        return [each for each in self._ending.values() if each[0].node.name == node]

    def _cut_short(self, node: str) -> list[Task]:
        """Let those that are ending there end at once."""
        ending = self._ending_on(node)
        for found, _ in ending:
            found.cut_short()
        return [end for _, end in ending]

    async def stop(self) -> None:
        """Stop driving all of them, and leave them as they are."""
        await asyncio.gather(*(found.stop() for found in self))

    def end_moved(self, key: str) -> None:
        """A transfer of that key ends at another time than its pod was told; it hears soon."""
        if not self._moved:
            asyncio.get_running_loop().call_later(MOVED_REAL_S, self._tell_moved)
        self._moved.add(key.split("/")[2])

    def _tell_moved(self) -> None:
        moved, self._moved = self._moved, set()
        for found in filter(None, map(self.of_engine, moved)):
            found.moved()

    def _forget(self, uid: str) -> runner.PodRunner | None:
        found = self._by_uid.pop(uid, None)
        if found is not None:
            there = self._by_node[found.node.name]
            del there[uid]
            if not there:
                del self._by_node[found.node.name]
        return found

    async def _give(self, found: runner.PodRunner, node: machine.Machine) -> None:
        """The pod's GPUs, by its requests or its claims, are told on it."""
        pod = found.pod.raw
        if (spec := self._spec(node.facts.pool)) is None or found.pod.uid not in self._by_uid:
            return  # It may be gone already: what it got now nobody would take back.
        try:
            there = slots.of_node(node.name, spec, node.facts.gpu)
        except errors.InputError:
            return  # The pool was changed to one that cannot be: nobody knows what it hands out.
        ids = node.given.take(pod, there)
        if not ids and spec.devices == "DRA":
            ids = tuple(await claiming.gpus_of(self._services.cluster, pod, node.name, spec))
        if ids and tuple(slots.told(pod)) != ids:
            found.annotate({names.GPUS: ",".join(ids)})

    def _admit(self, pod: ports.Object, node: machine.Machine) -> admission.Rejection | None:
        others = [found.pod.raw for found in self.on(node.name)]
        return admission.admit(pod, node.object, others)
