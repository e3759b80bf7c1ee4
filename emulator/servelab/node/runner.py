"""Drives the life of one pod: carries out its actions, wakes it in time, brings it its inputs."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelserve import ports
from modelserve.api import conditions, names, timestamps
from modelserve.api.faults import FaultType
from servelab.engine import stamps
from servelab.node import (
    actions,
    admission,
    commands,
    journal,
    lookups,
    machine,
    planning,
    podspec,
    profiles,
    starting,
    writer,
)
from servelab.node.addresses import PodAddresses
from servelab.node.kubelet import life, resuming, state
from servelab.node.kubelet.runtime import NEVER
from servelab.node.ports import Engines

log = logging.getLogger(__name__)

# Between two looks for a ConfigMap or Secret that is missing.
CONFIGURATION_REAL_S = 2.0


@dataclass(slots=True)
class Services:
    """What all pods of the process share. ``unix_s`` never goes back; ``late`` hears of delays,
    and whether a phase of a start was late.

    ``may_write`` says of a node by name whether it is ours to write for.
    """

    cluster: ports.Cluster
    engines: Engines
    addresses: PodAddresses
    unix_s: Callable[[], float]
    late: Callable[[float, bool], None] = lambda real_s, phase: None
    may_write: Callable[[str], bool] = lambda node: True
    rng: random.Random = field(default_factory=random.Random)
    writes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(64))


class PodRunner:
    """One pod on one emulated node. ``start`` it once; ``gone`` when its object has disappeared."""

    def __init__(
        self,
        pod: podspec.Pod,
        node: machine.Machine,
        services: Services,
        rejection: admission.Rejection | None = None,
    ) -> None:
        """``rejection`` says why the node does not admit it, if so."""
        self.node = node
        self.journals: dict[str, journal.Journal] = {}
        self._services = services
        self._plan = planning.of_pod(pod, node.facts, node.host.images)
        node.links.learn(self._plan.links)
        self.life = self._begin(pod, rejection)
        self._brief = node.brief and not self._plan.engines
        self._writer = writer.PodWriter(
            services.cluster, pod.raw, services.writes, self._mute, rng=services.rng
        )
        self._unseen: podspec.Pod | None = None
        self._wake = asyncio.Event()
        self._began_s = services.unix_s()
        self._commands = commands.Commands(
            self.life,
            self._plan,
            services.engines,
            node.facts.gpu.product_label,
            services.unix_s,
            self._wake.set,
            self.logged,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._wrong_faults = ""
        self._served = any(each.returning for each in self.life.state.engines.values())
        self.befall()

    @property
    def pod(self) -> podspec.Pod:
        return self.life.pod

    def xid(self, container: str) -> int:
        """Number of the XID error that the container's GPUs have; 0 for none."""
        found = self.life.state.faults.holding(FaultType.XID, self._services.unix_s(), container)
        return 0 if found is None else found.xid

    @property
    def returning(self) -> bool:
        """Whether an engine that served before a restart of ours does not yet, or nobody knows."""
        engines = self.life.state.engines.values()
        return self._served and (any(e.returning for e in engines) or not self._writer.idle)

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """What the pod's status tells of the container; None if there is none of that name."""
        return self.life.entry(container)

    def _begin(self, pod: podspec.Pod, rejection: admission.Rejection | None) -> life.PodLife:
        plan, node = self._plan, self.node
        address = self._services.addresses.restore(pod.uid, resuming.known_ip(pod))
        for image, fact in plan.images.items():
            if fact.present and not node.host.images.present(image):
                node.host.images.add(image, fact.size_bytes or 0)
        around = state.Surroundings(
            node.host,
            address,
            plan.works,
            plan.behaviors,
            plan.images,
            rejection,
            {name: each.start for name, each in plan.engines.items()},
            gpu_memory_gib=node.facts.gpu.driver_memory_mib / 1024,
            again=self._again,
        )
        if resuming.begun(pod):
            return resuming.resume(pod, around, self._services.unix_s())
        return life.PodLife(pod, around)

    def _again(self, container: str) -> starting.EngineStart | None:
        """What the node has kept makes another start quicker."""
        found = planning.again(self.pod, container, self.node.facts, self.node.host.images)
        if found is None:
            return None
        self.node.links.learn(found.links)
        return found.start

    def start(self) -> None:
        """Begin to drive it."""
        if self._plan.fault:
            self.node.sink.emit(self._subject(), "Warning", "InvalidBehavior", self._plan.fault)
        self.see(self.pod)
        work = (self._live(), self._writer.run(), self._commands.run())
        self._tasks = [asyncio.create_task(coroutine) for coroutine in work]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Write these on the pod."""
        self._writer.annotate(annotations)

    def see(self, pod: podspec.Pod) -> None:
        """The watch told of the pod as it stands now."""
        if self._cut_off():
            self._unseen = pod
            return
        now, meta = self._services.unix_s(), pod.raw["metadata"]
        news = pod.annotations.get(names.FAULTS) != self.pod.annotations.get(names.FAULTS)
        if len(pod.containers) > len(self.pod.containers):
            found = planning.of_pod(pod, self.node.facts, self.node.host.images)
            self.life.extend(found.works, found.behaviors, found.images)
        self.life.update(pod, now)
        if news:
            self.befall()
        if meta.get("deletionTimestamp"):
            # The stamp is the deadline, cut to seconds; the grace from now on is exact but for
            # pods that were going before we came.
            grace = float(meta.get("deletionGracePeriodSeconds") or 0)
            self.life.delete(min(now + grace, timestamps.parse_time(meta["deletionTimestamp"]) + 1))
        self._reassert(pod)
        self._wake.set()

    def back(self) -> None:
        """Its node may reach the API server again, and sees what it missed."""
        if self._unseen is not None and not self._cut_off():
            pod, self._unseen = self._unseen, None
            self.see(pod)

    def _cut_off(self) -> bool:
        return self.node.trouble.ailment(self._services.unix_s()).cut_off

    def _mute(self) -> bool:
        return self._cut_off() or not self._services.may_write(self.node.name)

    def befall(self) -> None:
        """What goes wrong with it may have changed: by its own annotation, or for its node."""
        began_s = resuming.began_real_s(self.pod) if resuming.begun(self.pod) else self._began_s
        faults, wrong = self.node.trouble.of_pod(self.pod, began_s)
        if wrong and wrong != self._wrong_faults:
            self.node.sink.emit(self._subject(), "Warning", "InvalidFaults", wrong)
        self._wrong_faults = wrong
        self.life.befall(faults, self._services.unix_s())
        self._wake.set()

    def moved(self) -> None:
        """A pull or a load of its ends at another time than was told."""
        self.life.moved(self._services.unix_s())
        self._wake.set()

    def exited(self, key: str, code: int) -> None:
        """The engine of that key went with its worker process."""
        for container in self._plan.engines:
            if self._commands.key(container) == key:
                self.life.exited(container, code, self._services.unix_s())
        self._wake.set()

    def wrote(self, key: str, line: str) -> None:
        """The engine of that key wrote a line."""
        for container in self._plan.engines:
            if self._commands.key(container) == key:
                self.logged(container, line)

    def logged(self, container: str, line: str) -> None:
        """A container wrote a line."""
        self._journal(container).append(self._services.unix_s(), line)

    async def leave(self) -> None:
        """Another process goes on with the pod: stop at once, and end our engine in silence."""
        await self.stop()
        await self._commands.kill_all()
        for found in self.journals.values():
            found.end()

    async def gone(self) -> None:
        """The object is gone: stop at once, end the engine, give the address back."""
        await self.stop()
        self._services.addresses.free(self.pod.uid)
        self.node.left(self.pod.uid, self._services.unix_s())
        for action in self.life.removed(self._services.unix_s()):
            self._do(action)
        for key in self.life.pulls():
            self.node.host.images.abandon(key)
        await self._commands.kill_all()
        for found in self.journals.values():
            found.end()

    async def stop(self) -> None:
        """Stop driving; the engine and the pod stay as they are."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._commands.stop()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("pod %s/%s", self.pod.namespace, self.pod.name, exc_info=error)

    async def _live(self) -> None:
        due = look_due = NEVER
        missing = await self._look_for_configuration()
        while not self.life.finished:
            self._wake.clear()
            now = self._services.unix_s()
            if missing and now >= look_due:
                missing = await self._look_for_configuration()
            taken = self.life.advance(now)
            if now > due:
                self._services.late(now - due, any(map(_is_phase, taken)))
            for action in taken:
                self._do(action)
            due = self.life.next_wake_real_s()
            look_due = now + CONFIGURATION_REAL_S if missing else NEVER
            await self._pause(min(due, look_due))

    async def _look_for_configuration(self) -> bool:
        """Find what its containers and volumes miss; returns whether anything."""
        found = await lookups.missing(self._services.cluster, self.pod)
        self.life.state.config_faults, self.life.state.volume_fault = found
        return any(found[0].values()) or bool(found[1])

    async def _pause(self, until_real_s: float) -> None:
        if until_real_s == NEVER:
            await self._wake.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until_real_s - self._services.unix_s())):
                await self._wake.wait()

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.WriteStatus(status):
                if not (self._brief and profiles.can_wait(status)):
                    self._writer.status(status)
            case actions.Annotate(annotations):
                self._writer.annotate(annotations)
            case actions.Emit():
                self._emit(action)
            case actions.Log(container, at, line):
                self._journal(container).append(at, stamps.stamped(line, at))
            case actions.NewLog(container):
                self._journal(container).rotate()
            case actions.Command():
                self._commands.put(action)
            case actions.Slow(path, factor):
                self.node.slow(self.pod.uid, path, factor, self._services.unix_s())
            case actions.Delete():
                self._writer.delete()
            case actions.ImagesChanged():
                self.node.images_changed()

    def _emit(self, event: actions.Emit) -> None:
        if self._brief and not profiles.is_told(event.kind):
            return
        if self.node.ration.lets(self.pod.uid, event.kind, self._services.unix_s()):
            self.node.sink.emit(
                self._subject(),
                event.kind,
                event.reason,
                event.message,
                field_path=event.field_path,
            )

    def _reassert(self, pod: podspec.Pod) -> None:
        """After a lapse the node controller set the pod unready: a kubelet takes that back."""
        sent = self._writer.sent
        seen = pod.raw["metadata"].get("resourceVersion", "")
        newer = ports.parse_version(seen) >= ports.parse_version(self._writer.version)
        if sent is None or not self._writer.idle or not newer:
            return
        if _ready({"status": sent}) != _ready(pod.raw):
            self._writer.again()

    def _journal(self, container: str) -> journal.Journal:
        return self.journals.setdefault(container, journal.Journal())

    def _subject(self) -> ports.Object:
        kind = {"apiVersion": "v1", "kind": "Pod"}
        return {**kind, "metadata": self.pod.raw["metadata"]}


def _is_phase(action: actions.Action) -> bool:
    """Whether it tells that a phase of a start has begun or ended."""
    return isinstance(action, actions.Annotate) and names.PHASES in action.annotations


def _ready(pod: ports.Object) -> str:
    return str(conditions.find(pod, "Ready").get("status", ""))
