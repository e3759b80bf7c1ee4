"""The life of a pod, as a state machine: inputs with a time, actions out.

Inside are a kubelet's parts, each with its next due time: the pod worker, the relist, the probe
workers, and what the containers do: log lines of those that words lay out, steps of engines.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from servelab.node.faults import fault
from servelab.node.kubelet import (
    behavior,
    enginelife,
    engineset,
    faulting,
    gates,
    laidout,
    resizing,
    runtime,
    state,
    stopping,
)
from servelab.node.kubelet.probeworkers import Worker as Prober
from servelab.node.kubelet.worker import ASAP, Worker
from servelab.node.pods import podspec
from servelab.node.rules import actions, conditions
from servelab.timing import transfers

NEVER = runtime.NEVER
Kind = podspec.ProbeKind


class PodLife:
    """One pod; ``begun`` where a kubelet has begun with it (see ``resuming``)."""

    def __init__(
        self,
        pod: podspec.Pod,
        around: state.Surroundings,
        begun: state.State | None = None,
    ) -> None:
        containers = runtime.Runtime(pod.uid, around.host.scale)
        found = begun.engines if begun else engineset.of_pod(pod, around.host, around.engines)
        self.state = begun or state.State(pod, around, containers, found)
        self.worker = Worker(self.state)
        self._lines = laidout.Lines()
        self._late_told = False

    @property
    def pod(self) -> podspec.Pod:
        return self.state.pod

    @property
    def finished(self) -> bool:
        """Nothing will ever happen again."""
        return self.worker.finished

    def advance(self, now_real_s: float) -> tuple[list[actions.Action], float]:
        """Let everything happen that is due.

        Returns what is to be done, in order, and when something is due next; infinite if only an
        input can change anything.
        """
        dues = self._dues()
        while (due := min(dues)) <= now_real_s:
            at = now_real_s if due <= ASAP else due
            self._step(at, dues)
            dues = self._dues()
        taken, self.state.out = self.state.out, []
        return taken, due

    def _dues(self) -> tuple[float, ...]:
        """When each of ``_PARTS`` is due; of what is due at once, the first goes first."""
        if self.finished:
            return (NEVER,)
        if not self.state.accepted_s:
            return (ASAP,)
        return (
            self.worker.resume_s,
            self._lines.due_s,
            faulting.due_s(self.state),
            self._engines_due_s(),
            self.state.due_relist_s(),
            self._deadline_s(),
            self.worker.probers.due_s(self.state),
        )

    def update(self, pod: podspec.Pod, now_real_s: float) -> None:
        """The object changed: what it says of itself counts from now on."""
        old, self.state.pod = self.state.pod, pod
        if not self.state.accepted_s:
            return
        resizing.begin(self.state, old)
        if pod.generation != old.generation or gates.moved(self.state, old):
            self.worker.poke(now_real_s)

    def extend(
        self,
        works: Mapping[str, transfers.Work],
        behaviors: Mapping[str, behavior.Behavior],
        images: Mapping[str, behavior.ImageFact],
    ) -> None:
        """Containers are added: what they pull, and how they behave."""
        self.state.around = dataclasses.replace(
            self.state.around, works=works, behaviors=behaviors, images=images
        )

    def delete(self) -> None:
        """Its deletion was asked for; the grace is the pod's as it stands when its end begins.

        Once it has begun, a shorter one changes nothing: a kubelet does not break off a kill.
        """
        if not self.worker.ending:
            self.worker.end()

    def moved(self, now_real_s: float) -> None:
        """The end of a pull or a load has moved: who waits for it looks again, and tells soon."""
        for engine in self.state.engines.values():
            if engine.cold.phase is not None:
                engine.cold.hurry(now_real_s)
        if self.state.accepted_s:
            self.worker.look(now_real_s)

    def removed(self) -> None:
        """The object is gone: what still runs ends as ever, and only events tell of it."""
        self.state.gone = True
        self.delete()
        if not self.state.accepted_s:
            self.worker.abandon()

    def off(self, now_real_s: float) -> None:
        """Nothing of it goes on, from this moment."""
        for engine in self.state.engines.values():
            engine.moves.stop(now_real_s)
        self.worker.abandon()

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """What the pod's status tells of the container."""
        known = any(spec.name == container for spec in self.pod.containers)
        return self.state.told.get(container, {}) if known else None

    def pulls(self) -> list[str]:
        """Keys of its pulls at the node's image store."""
        return [engineset.pull_key(self.pod, spec) for spec in self.pod.containers]

    # What engines tell.

    def befall(self, faults: fault.Faults, now_real_s: float) -> None:
        """These faults are the pod's from now on."""
        if faults != self.state.faults:
            self._at(now_real_s)
            self.state.faults = faults
            if self.state.accepted_s:
                self._turn(now_real_s)

    def reserved(self, container: str, dial: str) -> None:
        """Its address is bound; empty for one that will refuse to start."""
        engine = self.state.engines[container]
        engine.reserved = True
        if dial:
            annotation = engineset.dial_annotation(engine)
            self.state.out.append(actions.Annotate({annotation: dial}))

    def serving(self, container: str, now_real_s: float) -> None:
        """It answers from now on."""
        self._at(now_real_s)
        self.state.engines[container].served(self.state.out, now_real_s)
        if self.state.told:
            state.write(self.state, now_real_s, anew=())

    def wrote(self, container: str, line: str, now_real_s: float) -> None:
        """Its process wrote a line, which is in its log."""
        engine = self.state.engines.get(container)
        if engine is not None and engine.instance is not None:
            engine.instance.say(now_real_s, line)

    def drained(self, container: str, now_real_s: float) -> None:
        """It finished its streams and stopped."""
        self.exited(container, enginelife.DRAINED, now_real_s)

    def exited(self, container: str, exit_code: int, now_real_s: float) -> None:
        """It ended by itself, or with its worker process."""
        self._at(now_real_s)
        self.state.engines[container].ended(now_real_s, exit_code)
        self._ended(now_real_s)

    def _at(self, now_real_s: float) -> None:
        """Something happened from outside: from now on steady probes are no longer left out."""
        self.state.now_s = max(self.state.now_s, now_real_s)

    def _ended(self, now_real_s: float) -> None:
        stopping.hasten(self.state)
        self.worker.look(now_real_s)

    def _engines_due_s(self) -> float:
        return min((each.due_s() for each in self.state.engines.values()), default=NEVER)

    def _deadline_s(self) -> float:
        """When the kubelet finds that the pod has been active for too long."""
        if self._late_told or self.state.deadline_s == NEVER:
            return NEVER
        return state.next_round_s(self.state.deadline_s)

    def _step(self, at: float, dues: tuple[float, ...]) -> None:
        self.state.now_s = at
        if self.state.accepted_s:
            first = next(number for number, due in enumerate(dues) if due <= at)
            _PARTS[first](self, at)
            if gates.echo(self.state):
                self.worker.poke(at)
        else:
            self._accept(at)
        fresh, self.state.cri.fresh = self.state.cri.fresh, []
        for instance in fresh:
            self._lines.lay_out(instance)

    def _accept(self, at: float) -> None:
        """The kubelet takes the pod on."""
        current = self.state
        current.accepted_s = at
        if current.around.rejection is not None:
            self._reject(*current.around.rejection, at)
        else:
            for engine in current.engines.values():
                engine.accept(current.out, at)
            faulting.turn(current, at)
        self.worker.step(at)

    def _relist(self, at: float) -> None:
        if self.state.relist(at):
            self.worker.poke(at)

    def _expire(self, at: float) -> None:
        """It has been active for too long."""
        self._late_told = True
        self.worker.poke(at)

    def _turn(self, at: float) -> None:
        """Faults begin or end."""
        ran = {name: engine.instance for name, engine in self.state.engines.items()}
        faulting.turn(self.state, at)
        if any(ran[name] is not engine.instance for name, engine in self.state.engines.items()):
            self._ended(at)
        self.worker.look(at)

    def _act(self, at: float) -> None:
        """Let engines do what is due."""
        for engine in self.state.engines.values():
            if engine.due_s() > at:
                continue
            ran = engine.instance
            faulting.loaded(self.state, engine, at)
            if engine.step(self.state.out, at):
                state.write(self.state, at, anew=())
            if ran is not None and engine.instance is None:
                self._ended(at)

    def _reject(self, reason: str, message: str, at: float) -> None:
        """The node does not admit it: it has failed before it began."""
        current = self.state
        current.emit(None, reason, message, kind="Warning")
        current.may_run, current.phase, current.told_phase = False, "Failed", "Failed"
        current.reason, current.message = reason, f"Pod was rejected: {message}"
        state.write_rejection(current)

    def _probe(self, at: float) -> None:
        workers = self.worker.probers.workers
        for each in [each for each in workers if each.due_s(self.state) <= at]:
            if each.tick(self.state, at):
                self._judged(each, at)

    def _judged(self, prober: Prober, at: float) -> None:
        """A result that counts has changed: the status tells it at once, and a sync follows."""
        entry, ok = self.state.told[prober.spec.name], prober.result is True
        if prober.probe.kind is Kind.LIVENESS:
            if prober.result is False:
                self.worker.poke(at)
            return
        key = "ready" if prober.probe.kind is Kind.READINESS else "started"
        if entry[key] is not ok and entry["containerID"] == prober.container_id:
            entry[key] = ok
            state.write(self.state, at, anew=conditions.OF_READINESS if key == "ready" else ())
        self.worker.poke(at)

    def _say(self, at: float) -> None:
        if (line := self._lines.take()) is not None:
            self.state.out.append(line)


# What a life is made of, in the order of ``_dues``.
_PARTS: tuple[Callable[[PodLife, float], None], ...] = (
    lambda life, at: life.worker.step(at),
    PodLife._say,
    PodLife._turn,
    PodLife._act,
    PodLife._relist,
    PodLife._expire,
    PodLife._probe,
)
