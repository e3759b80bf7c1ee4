"""Carries out what a pod's life asks of its engines: reserve, serve, drain, kill."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable

from modelserve import errors
from servelab.engine import stamps
from servelab.node.kubelet import life
from servelab.node.pods import planning, podspec
from servelab.node.rules import actions
from servelab.node.services import Services

log = logging.getLogger(__name__)


class EngineControl:
    """The commands of one pod, in order; drains are not waited for. ``run`` it as a task.

    ``wake`` is called after each that may have changed something; ``say`` takes log lines.
    """

    def __init__(
        self,
        pod_life: life.PodLife,
        plan: planning.Plan,
        services: Services,
        wake: Callable[[], None],
        say: Callable[[str, str], None],
    ) -> None:
        self._life = pod_life
        self._plan = plan
        self._engines = services.engines
        self._unix_s = services.unix_s
        self._wake = wake
        self._say = say
        self._refusals = {name: each.refusal for name, each in plan.engines.items()}
        self._queue: asyncio.Queue[actions.Command] = asyncio.Queue()
        self._drains: set[asyncio.Task[None]] = set()

    def put(self, command: actions.Command) -> None:
        """Carry it out after those before."""
        self._queue.put_nowait(command)

    async def run(self) -> None:
        """Carry out one after the other."""
        while True:
            command = await self._queue.get()
            if command.verb is actions.Verb.DRAIN:
                # Not waited for: the grace may end first, and then it is killed.
                task = asyncio.create_task(self._drain(command))
                self._drains.add(task)
                task.add_done_callback(self._drains.discard)
                continue
            try:
                await self._obey(command)
            except errors.ModelServeError as error:
                self._failed(command.container, error)
            self._wake()

    async def stop(self) -> None:
        """End the drains that are under way, and tell nobody any more."""
        tasks = list(self._drains)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._wake, self._say = _nothing, _nothing

    async def kill_all(self) -> None:
        """The pod is gone, and so are its engines."""
        for container in self._plan.engines:
            await self._quietly(self._engines.kill(self.key(container)))

    def key(self, container: str) -> str:
        """Under which key the workers know that engine."""
        return engine_key(self._life.pod, container, self._plan)

    def container(self, key: str) -> str | None:
        """Whose engine that is; None if it is none of this pod's."""
        return next((name for name in self._plan.engines if self.key(name) == key), None)

    async def _obey(self, command: actions.Command) -> None:
        container, key = command.container, self.key(command.container)
        if command.verb is actions.Verb.RESERVE:
            self._life.reserved(container, await self._reserve(container, key))
        elif command.verb is actions.Verb.OPEN:
            await self._engines.open(key)
        elif command.verb is actions.Verb.SERVE:
            if self._refusals[container]:
                raise errors.InputError(self._refusals[container])
            await self._engines.serve(key)
            self._life.serving(container, self._unix_s())
        elif command.verb is actions.Verb.DISTURB:
            await self._engines.disturb(key, hung=command.hung, factor=command.factor)
        elif command.verb is actions.Verb.KILL:
            await self._engines.kill(key)

    async def _reserve(self, container: str, key: str) -> str:
        """The engine's address; empty for one that will fail when it has loaded."""
        if self._refusals[container]:
            return ""
        pod, plan = self._life.pod, self._plan.engines[container]
        try:
            return await self._engines.reserve(
                key, plan.spec.raw, pod.annotations, plan.gpu.product_label, _seed(key)
            )
        except errors.InputError as error:
            self._refusals[container] = f"ERROR {error}"
            return ""

    async def _drain(self, command: actions.Command) -> None:
        key = self.key(command.container)
        await self._quietly(self._engines.drain(key, command.grace_real_s))
        self._life.drained(command.container, self._unix_s())
        self._wake()

    def _failed(self, container: str, error: errors.ModelServeError) -> None:
        """The engine could not start: it says why, and exits as the real one would."""
        pod, now_s = self._life.pod, self._unix_s()
        said = stamps.stamped(self._refusals[container] or f"ERROR {error}", now_s)
        log.warning("engine of pod %s/%s: %s", pod.namespace, pod.name, said)
        for line in said.splitlines():
            self._say(container, line)
        self._life.exited(container, self._plan.engines[container].exit_code, now_s)

    async def _quietly(self, work: Awaitable[None]) -> None:
        try:
            await work
        except errors.ModelServeError as error:
            pod = self._life.pod
            log.debug("engine of pod %s/%s: %s", pod.namespace, pod.name, error)


def _nothing(*_: str) -> None:
    """What is told to nobody."""


def engine_key(pod: podspec.Pod, container: str, plan: planning.Plan) -> str:
    """A pod's first engine goes by the pod's UID, each further one by its name besides."""
    first = next(iter(plan.engines))
    return pod.uid if container == first else f"{pod.uid}/{container}"


def _seed(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4])
