"""Drives the life of one pod: carries out its actions, wakes it in time, brings it its inputs."""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelserve import errors, ports
from modelserve.api import conditions, timestamps
from servelab.engine import stamps
from servelab.node import (
    actions,
    admission,
    configuration,
    journal,
    machine,
    planning,
    podspec,
    resume,
    stages,
    wording,
    writer,
)
from servelab.node.addresses import PodAddresses
from servelab.node.context import NEVER
from servelab.node.kubelet import resuming, state
from servelab.node.kubelet.life import PlainLife
from servelab.node.ports import Engines, Life

log = logging.getLogger(__name__)

# Between two looks for a ConfigMap or Secret that is missing.
CONFIGURATION_REAL_S = 2.0


@dataclass(slots=True)
class Services:
    """What all pods of the process share. ``unix_s`` never goes back; ``late`` hears of delays."""

    cluster: ports.Cluster
    engines: Engines
    addresses: PodAddresses
    unix_s: Callable[[], float]
    late: Callable[[float], None] = lambda real_s: None
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
        self._plan = planning.plan(pod, node.facts, node.host.images)
        self._refusal = self._plan.refusal
        node.links.learn(self._plan.links)
        self.life = self._begin(pod, rejection)
        self._writer = writer.PodWriter(services.cluster, pod.raw, services.writes)
        self._wake = asyncio.Event()
        self._commands: asyncio.Queue[actions.Command] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._drains: set[asyncio.Task[None]] = set()

    @property
    def pod(self) -> podspec.Pod:
        return self.life.pod

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """What the pod's status tells of the container; None if there is none of that name."""
        return self.life.entry(container)

    def _begin(self, pod: podspec.Pod, rejection: admission.Rejection | None) -> Life:
        plan, services = self._plan, self._services
        address = services.addresses.restore(pod.uid, resume.known_ip(pod))
        if plan.engine is not None and rejection is None:
            arguments = (pod, self.node.host, address, plan.works, plan.engine)
            if resume.begun(pod):
                return resume.life(*arguments, services.unix_s())
            return stages.PodLife(*arguments)
        for image, fact in plan.images.items():
            if fact.present and not self.node.host.images.present(image):
                self.node.host.images.add(image, fact.size_bytes or 0)
        around = state.Surroundings(
            self.node.host, address, plan.works, plan.behaviors, plan.images, rejection
        )
        return resuming.resume(pod, around) if resume.begun(pod) else PlainLife(pod, around)

    def start(self) -> None:
        """Begin to drive it."""
        if self._plan.fault:
            self.node.sink.emit(self._subject(), "Warning", "InvalidBehavior", self._plan.fault)
        self.see(self.pod)
        work = (self._live(), self._writer.run(), self._command())
        self._tasks = [asyncio.create_task(coroutine) for coroutine in work]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def see(self, pod: podspec.Pod) -> None:
        """The watch told of the pod as it stands now."""
        now, meta = self._services.unix_s(), pod.raw["metadata"]
        self.life.update(pod, now)
        if meta.get("deletionTimestamp"):
            # The stamp is the deadline, cut to seconds; the grace from now on is exact but for
            # pods that were going before we came.
            grace = float(meta.get("deletionGracePeriodSeconds") or 0)
            self.life.delete(min(now + grace, timestamps.parse_time(meta["deletionTimestamp"]) + 1))
        self._reassert(pod)
        self._wake.set()

    def moved(self) -> None:
        """A pull or a load of its ends at another time than was told."""
        self.life.moved(self._services.unix_s())
        self._wake.set()

    def exited(self, code: int) -> None:
        """The engine went with its worker process."""
        self.life.exited(code, self._services.unix_s())
        self._wake.set()

    def logged(self, line: str) -> None:
        """The engine wrote a line."""
        if self._plan.container is not None:
            self._journal(self._plan.container.name).append(self._services.unix_s(), line)

    async def gone(self) -> None:
        """The object is gone: stop at once, end the engine, give the address back."""
        await self.stop()
        self._services.addresses.free(self.pod.uid)
        for action in self.life.removed(self._services.unix_s()):
            self._do(action)
        for key in self.life.pulls():
            self.node.host.images.abandon(key)
        if self._plan.engine is not None:
            await self._quietly(self._services.engines.kill(self.pod.uid))
        for found in self.journals.values():
            found.end()

    async def stop(self) -> None:
        """Stop driving; the engine and the pod stay as they are."""
        tasks = [*self._tasks, *self._drains]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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
            if now > due:
                self._services.late(now - due)
            for action in self.life.advance(now):
                self._do(action)
            due = self.life.next_wake_real_s()
            look_due = now + CONFIGURATION_REAL_S if missing else NEVER
            await self._pause(min(due, look_due))

    async def _look_for_configuration(self) -> bool:
        """Find what the environment of its containers misses; returns whether anything."""
        if not isinstance(self.life, PlainLife):
            return False
        wanted = {spec.name: configuration.references(spec) for spec in self.pod.containers}
        mounts = configuration.volumes(self.pod)
        every = {reference for found in wanted.values() for reference in found}
        every |= {reference for _, reference in mounts}
        found = {
            (reference.kind, reference.name): keys
            for reference in every
            if (keys := await self._keys(reference)) is not None
        }
        faults = {
            name: configuration.fault(self.pod.namespace, references, found)
            for name, references in wanted.items()
        }
        self.life.state.config_faults = faults
        unmounted = (
            wording.mount_failed(volume, why)
            for volume, reference in mounts
            if (why := configuration.fault(self.pod.namespace, [reference], found))
        )
        self.life.state.volume_fault = next(unmounted, "")
        return any(faults.values()) or bool(self.life.state.volume_fault)

    async def _keys(self, reference: configuration.Reference) -> frozenset[str] | None:
        """The keys it has; None if it does not exist. What we may not see counts as complete."""
        kind = ports.SECRETS if reference.kind == "Secret" else ports.CONFIG_MAPS
        try:
            found = await self._services.cluster.get(kind, self.pod.namespace, reference.name)
        except errors.NotFound:
            return None
        except errors.ClusterError:
            return frozenset([reference.key])
        return frozenset({**(found.get("data") or {}), **(found.get("binaryData") or {})})

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
                self._commands.put_nowait(action)
            case actions.Delete():
                self._writer.delete()
            case actions.ImagesChanged():
                self.node.images_changed()

    def _emit(self, event: actions.Emit) -> None:
        if self.node.ration.lets(self.pod.uid, event.kind, self._services.unix_s()):
            self.node.sink.emit(
                self._subject(),
                event.kind,
                event.reason,
                event.message,
                field_path=event.field_path,
            )

    async def _command(self) -> None:
        while True:
            command = await self._commands.get()
            if command.verb is actions.Verb.DRAIN:
                # Not waited for: the grace may end first, and then it is killed.
                task = asyncio.create_task(self._drain(command.grace_real_s))
                self._drains.add(task)
                task.add_done_callback(self._drains.discard)
                continue
            try:
                await self._obey(command.verb)
            except errors.ModelServeError as error:
                self._failed(error)
            self._wake.set()

    async def _obey(self, verb: actions.Verb) -> None:
        engines, uid = self._services.engines, self.pod.uid
        if verb is actions.Verb.RESERVE:
            self.life.reserved(await self._reserve())
        elif verb is actions.Verb.SERVE:
            if self._refusal:
                raise errors.InputError(self._refusal)
            await engines.serve(uid)
            self.life.serving(self._services.unix_s())
        elif verb is actions.Verb.KILL:
            await engines.kill(uid)

    async def _reserve(self) -> str:
        """The engine's address; empty for one that will fail when it has loaded."""
        assert self._plan.container is not None
        if self._refusal:
            return ""
        try:
            return await self._services.engines.reserve(
                self.pod.uid,
                self._plan.container.raw,
                self.pod.annotations,
                self.node.facts.gpu.product_label,
                _seed(self.pod.uid),
            )
        except errors.InputError as error:
            self._refusal = f"ERROR {error}"
            return ""

    async def _drain(self, grace_real_s: float) -> None:
        await self._quietly(self._services.engines.drain(self.pod.uid, grace_real_s))
        self.life.drained(self._services.unix_s())
        self._wake.set()

    def _failed(self, error: errors.ModelServeError) -> None:
        """The engine could not start: it says why, and exits as the real one would."""
        log.warning("engine of pod %s/%s: %s", self.pod.namespace, self.pod.name, error)
        for line in (self._refusal or f"ERROR {error}").splitlines():
            self.logged(line)
        self.life.exited(self._plan.exit_code, self._services.unix_s())

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

    async def _quietly(self, work: Awaitable[None]) -> None:
        try:
            await work
        except errors.ModelServeError as error:
            log.debug("engine of pod %s/%s: %s", self.pod.namespace, self.pod.name, error)


def _ready(pod: ports.Object) -> str:
    return str(conditions.find(pod, "Ready").get("status", ""))


def _seed(uid: str) -> int:
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4])
