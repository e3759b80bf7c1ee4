"""Drives the life of one pod: wakes it in time, brings it its inputs, has its actions done."""

import asyncio
import collections
import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

from modelserve import ports
from modelserve.api import names
from modelserve.api.faults import FaultType
from servelab.node.kubelet import resuming
from servelab.node.kubelet.runtime import NEVER
from servelab.node.machines import machine
from servelab.node.pods import (
    beginning,
    carrying,
    enginecontrol,
    journal,
    planning,
    podspec,
    references,
    turns,
    watched,
    writer,
)
from servelab.node.rules import actions, admission
from servelab.node.services import Services

log = logging.getLogger(__name__)

# How long the end of a pod waits for the answer to its last write.
ANSWER_REAL_S = 1.0


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
        self.journals = collections.defaultdict[str, journal.Journal](journal.Journal)
        self._services = services
        self._plan = planning.of_pod(pod, node.facts, node.host.images)
        node.links.learn(self._plan.links)
        self.life = beginning.life_of(pod, self._plan, node, services, rejection)
        cluster, limit = services.cluster, services.writes
        self._writer = writer.PodWriter(cluster, pod.raw, limit, rng=services.rng)
        self._unseen: podspec.Pod | None = None
        self._turns = turns.Turns(self._turn, services.unix_s, self._failed)
        self._due_s = NEVER
        self._began_s = services.unix_s()
        self._engine_control = enginecontrol.EngineControl(
            self.life, self._plan, services, self._turns.soon, self.logged
        )
        self._carrier = carrying.Carrier(
            self.life,
            node,
            services,
            self._writer,
            self._engine_control,
            self.journals,
            brief=node.brief and not self._plan.engines,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._over, self._reached = asyncio.Event(), asyncio.Event()
        self._reached.set()
        self._asked: list[actions.Action] = []
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
        return self._served and (any(e.returning for e in engines) or self.writing)

    @property
    def writing(self) -> bool:
        """Whether something of it is still to be written."""
        return bool(self._asked) or not self._writer.idle

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """What the pod's status tells of the container; None if there is none of that name."""
        return self.life.entry(container)

    def start(self) -> None:
        """Begin to drive it."""
        if self._plan.fault:
            self._carrier.warn("InvalidBehavior", self._plan.fault)
        self.see(self.pod)
        # The writer first: it ends with the object.
        work = [self._writer.run(self._mute), self._configured()]
        if self._plan.engines:
            work.append(self._engine_control.run())
        self._tasks = [asyncio.create_task(coroutine) for coroutine in work]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Write these on the pod."""
        self._writer.annotate(annotations)

    def hear(self, pod: ports.Object) -> None:
        """The watch told of the pod as it stands now."""
        if watched.is_echo(pod, self.pod, self._writer.version):
            self.life.state.pod = dataclasses.replace(self.pod, raw=pod)
        else:
            self.see(podspec.parse(pod))

    def see(self, pod: podspec.Pod) -> None:
        """Take in the pod as it stands now."""
        if self._cut_off():
            self._unseen = pod
            return
        now = self._services.unix_s()
        news = pod.annotations.get(names.FAULTS) != self.pod.annotations.get(names.FAULTS)
        if planning.images_of(pod) != planning.images_of(self.pod):
            found = planning.of_pod(pod, self.node.facts, self.node.host.images)
            self.life.extend(found.works, found.behaviors, found.images)
        self.life.update(pod, now)
        if news:
            self.befall()
        if pod.deleted:
            self.life.delete()
        self._reassert(pod)
        self._turns.soon()

    def back(self) -> None:
        """Its node may reach the API server again, and sees what it missed."""
        if self._cut_off():
            return
        self._reached.set()
        if self._unseen is not None:
            pod, self._unseen = self._unseen, None
            self.see(pod)

    def _cut_off(self) -> bool:
        return self.node.trouble.ailment(self._services.unix_s()).cut_off

    def _mute(self) -> bool:
        return self._cut_off() or not self.node.beat.ours

    def befall(self) -> None:
        """What goes wrong with it may have changed: by its own annotation, or for its node."""
        began_s = resuming.began_real_s(self.pod) if resuming.begun(self.pod) else self._began_s
        faults, wrong = self.node.trouble.of_pod(self.pod, began_s)
        if wrong and wrong != self._wrong_faults:
            self._carrier.warn("InvalidFaults", wrong)
        self._wrong_faults = wrong
        self.life.befall(faults, self._services.unix_s())
        self._turns.soon()

    def moved(self) -> None:
        """A pull or a load of its ends at another time than was told."""
        self.life.moved(self._services.unix_s())
        self._turns.soon()

    def exited(self, key: str, code: int) -> None:
        """The engine of that key went with its worker process."""
        if (container := self._engine_control.container(key)) is not None:
            self.life.exited(container, code, self._services.unix_s())
        self._turns.soon()

    def wrote(self, key: str, line: str) -> None:
        """The engine of that key wrote a line."""
        if (container := self._engine_control.container(key)) is not None:
            self.logged(container, line)

    def logged(self, container: str, line: str) -> None:
        """A container wrote a line."""
        now = self._services.unix_s()
        self.life.wrote(container, line, now)
        self.journals[container].append(now, line)

    async def leave(self) -> None:
        """Another process goes on with the pod: stop at once, and end our engine in silence."""
        await self.stop()
        await self._silence()

    async def gone(self) -> None:
        """The object is gone: when its node hears of it, what still runs ends as ever, unseen."""
        self._unseen = None
        self._writer.close()
        if self._cut_off() and not self._over.is_set():
            self._reached.clear()
        try:
            await self._reached.wait()
            self.life.removed()
            self._turns.soon()
            if not self.life.finished:
                await self._over.wait()
            if self._writer.sending:
                # Cut off, it would take its connection along: the watch is before the answer.
                await asyncio.wait(self._tasks[:1], timeout=ANSWER_REAL_S)
        finally:
            await self.off()

    def cut_short(self) -> None:
        """One that is ``gone`` ends at once: its node is no more, or another process's."""
        self._reached.set()
        self._over.set()

    async def off(self) -> None:
        """Nothing of it goes on: end the engines, give back what it had of the node."""
        await self.stop()
        self._carry_out()
        now_s = self._services.unix_s()
        self.life.off(now_s)
        self._services.addresses.free(self.pod.uid)
        self.node.left(self.pod.uid, now_s)
        for key in self.life.pulls():
            self.node.host.images.abandon(key)
        self.node.ration.forget(self.pod.uid)
        await self._silence()

    async def _silence(self) -> None:
        """Its engines end, and whoever reads a log has seen all of it."""
        await self._engine_control.kill_all()
        for found in self.journals.values():
            found.end()

    async def stop(self) -> None:
        """Stop driving; the engine and the pod stay as they are.

        It and its parts hold each other until now: left to the collector, thousands would pile up.
        """
        self._turns.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._engine_control.stop()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        log.error("pod %s/%s", self.pod.namespace, self.pod.name, exc_info=error)
        self._over.set()

    def _turn(self) -> float:
        """Let everything happen that is due; returns when something is due next.

        What it asks for is carried out after the turns of others that are due as well: where a
        hundred pods end a phase at once, the last is late by the others' turns alone.
        """
        now = self._services.unix_s()
        taken, due_s = self.life.advance(now)
        if now > self._due_s:
            self._services.late(now - self._due_s, any(map(actions.tells_phase, taken)))
        if taken and not self._asked:
            self._turns.after(self._carry_out)
        self._asked += taken
        self._due_s = due_s
        if self.life.finished:
            self._over.set()
        return due_s

    def _carry_out(self) -> None:
        asked, self._asked = self._asked, []
        for action in asked:
            self._carrier.do(action)

    async def _configured(self) -> None:
        """It begins when what it needs of others was looked for; each look may be news."""
        cluster, sleep_real = self._services.cluster, self._services.clock.sleep_real
        async for _ in references.looked_for(self.life, cluster, sleep_real):
            self._turns.begin()

    def _reassert(self, pod: podspec.Pod) -> None:
        """After a lapse the node controller set the pod unready: a kubelet takes that back."""
        sent, version = self._writer.sent, self._writer.version
        if sent is not None and not self.writing and watched.is_overwritten(pod.raw, sent, version):
            self._writer.again()
