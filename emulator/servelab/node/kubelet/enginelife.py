"""A container that is an engine: what its process does while the kubelet looks after it.

Its steps are transfers and waits; it serves, is probed, drains at SIGTERM, and ends like any other
container. ``state`` holds one ``Engine`` a container; each run of the container begins anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from modelserve.api import wire
from servelab.node.kubelet import moving, runtime
from servelab.node.pods import starting
from servelab.node.rules import actions
from servelab.timing import transfers

NEVER = runtime.NEVER
DRAINED = 0
BEYOND_REAL_S = 1.0
HEALTH = "/health"  # where one that listens before it is ready says so; other paths answer


@dataclass(frozen=True, slots=True)
class Doom:
    """When it will end, by itself, and what it says then."""

    at_s: float
    exit_code: int
    lines: Sequence[str]


@dataclass(slots=True)
class Engine:
    """One engine container. Times are Unix seconds, real, where no name says otherwise."""

    container: str
    moves: moving.Moves
    cold: starting.ColdStart
    leads: bool  # the pod's annotations tell of this one
    instance: runtime.Instance | None = None
    pulling: bool = False
    reserving: bool = False  # an address is asked for, or there
    reserved: bool = False
    opened: bool = False  # it listens, and is not ready
    asked: bool = False  # to serve
    serving: bool = False
    returning: bool = False  # it served before the emulator's process was gone
    stuck: bool = False  # nothing is answered
    cut_off: bool = False  # the same for all but its kubelet: the node is lost
    factor: float = 1.0  # by which its steps are slow
    doom: Doom | None = None

    # What the kubelet finds.

    def listens(self) -> bool:
        """Whether its port is open."""
        return self.opened or self.serving or self.returning

    def healthy(self) -> bool:
        """Whether its health check says that all is well."""
        return (self.serving or self.returning) and not self.stuck

    def unready(self, path: str) -> int:
        """The status of its answer while it is not healthy; 0 if there is none."""
        return 0 if self.stuck else 503 if path.startswith(HEALTH) else 200

    def running(self, now_s: float) -> bool:
        """Whether its container runs."""
        return self.instance is not None and not self.instance.exited(now_s)

    # What happens to it.

    def accept(self, out: list[actions.Action], now_s: float) -> None:
        """The kubelet has taken the pod on. Its address is told with the first status."""
        self._enter(out, wire.Phase.IMAGE_PULL, now_s)
        self._reserve(out)

    def launch(
        self,
        out: list[actions.Action],
        instance: runtime.Instance,
        now_s: float,
        again: starting.EngineStart | None,
    ) -> None:
        """Its container has started. ``again``: how it starts once it has run before."""
        if instance.restart:
            self.cold = starting.ColdStart(again or self.cold.start, self.moves.host.scale)
        self.instance, self.pulling = instance, False
        if instance.restart or not self.reserving:
            self._reset()
            self._reserve(out)
        self._next_step(out, now_s)

    def relaunch(
        self, out: list[actions.Action], instance: runtime.Instance, now_s: float, *, going: bool
    ) -> None:
        """After a restart of ours: the container ran on, its engine needs a process and an address.

        A step that was running goes on from when it began; an engine that had loaded serves at
        once. ``going``: the pod is on its way out, and there is nothing left to drain.
        """
        self.instance = instance
        cold = self.cold
        # The log was lost with the process; what the engine said while it started is known.
        out.extend(instance.say(at, text) for at, text in cold.past_lines())
        self.returning = served = cold.phase in (wire.Phase.PROBE, wire.Phase.STARTED)
        if going and served:
            return
        self._reserve(out)
        if cold.step is not None:
            self.moves.start(cold.step.work, cold.since_real_s)
            cold.schedule_lines()
        elif served:
            self._serve(out)
        else:
            # No stamps tell how far it was: it starts from the beginning.
            self._next_step(out, now_s)

    def served(self, out: list[actions.Action], now_s: float) -> None:
        """It answers: now its probes decide."""
        if not self.running(now_s):
            return
        self.serving, self.returning = True, False
        if self.cold.phase in starting.TIMED:
            self.moves.stop(now_s)
            self._enter(out, wire.Phase.PROBE, now_s)

    def ended(self, now_s: float, exit_code: int, reason: str = "") -> None:
        """Its process is gone by itself."""
        if self.instance is not None and self.running(now_s):
            self.instance.end(now_s, exit_code, reason)
            self._gone(now_s)
        elif self.instance is None:
            self._reset()

    def die(
        self, out: list[actions.Action], now_s: float, exit_code: int, lines: Sequence[str]
    ) -> None:
        """A fault ends it, with these last words."""
        if self.instance is None or not self.running(now_s):
            return
        out.extend(self.instance.say(now_s, line) for line in lines)
        self._command(out, actions.Verb.KILL)
        self.ended(now_s, exit_code)

    def disturb(
        self, out: list[actions.Action], *, stuck: bool, cut_off: bool, factor: float
    ) -> None:
        """It answers nothing, or cannot be reached, or is slow; or is well again."""
        if (stuck, cut_off, factor) != (self.stuck, self.cut_off, self.factor):
            self.stuck, self.cut_off, self.factor = stuck, cut_off, factor
            if self.instance is not None:
                self._tell_disturbed(out)

    def step_is_over(self, now_s: float) -> bool:
        """Whether the step that runs has ended by now."""
        return now_s >= self._step_ends_s()

    def settle(self, out: list[actions.Action], now_s: float, *, ready: bool) -> None:
        """The cold start is over once the container is ready."""
        if ready and self.cold.phase is wire.Phase.PROBE:
            self._enter(out, wire.Phase.STARTED, now_s)

    # What it does by itself.

    def due_s(self) -> float:
        """When something is due next."""
        instance, cold = self.instance, self.cold
        if self.pulling:
            return cold.progress_at_real_s
        if instance is None:
            return NEVER
        ends_s = min(instance.ends_s, instance.term_s, self.doom.at_s if self.doom else NEVER)
        if cold.step is None or self.asked:
            return ends_s
        over_s = self._step_ends_s()
        due_s = min(over_s, cold.next_line_real_s(over_s), cold.progress_at_real_s)
        if due_s >= over_s and cold.next_step is None and not self.reserved:
            # All is loaded, and there is no address yet to serve at.
            due_s = NEVER
        return min(ends_s, due_s)

    def step(self, out: list[actions.Action], now_s: float) -> bool:
        """Do what is due; returns whether the pod's status is to be told."""
        instance, cold = self.instance, self.cold
        if self.pulling:
            return self._tell(out, now_s)
        if instance is None:
            return False
        if now_s >= instance.ends_s:
            self._command(out, actions.Verb.KILL)
            self._gone(now_s)
            return False
        if now_s >= instance.term_s:
            self._terminate(out, instance, now_s)
            return False
        if self.doom is not None and now_s >= self.doom.at_s:
            self.die(out, self.doom.at_s, self.doom.exit_code, self.doom.lines)
            return False
        over_s = self._step_ends_s()
        for at, line in cold.take_lines(now_s, over_s):
            out.append(instance.say(at, line.text))
            if line.listens and self.reserved:
                self.opened = True
                self._command(out, actions.Verb.OPEN)
        if now_s < over_s:
            return self._tell(out, now_s)
        if cold.next_step is not None:
            self._next_step(out, over_s)
            return True
        if self.reserved:
            self._serve(out)
        else:
            cold.progress_at_real_s = NEVER
        return False

    def condition(self, now_s: float) -> tuple[str, str, str]:
        """Status, reason and message of the pod's condition about its start."""
        return self.cold.condition(self._progress(now_s))

    def _terminate(
        self, out: list[actions.Action], instance: runtime.Instance, now_s: float
    ) -> None:
        """SIGTERM: one that serves finishes its streams; one that loads has no handler yet."""
        left_s, instance.term_s = instance.ends_s - now_s, NEVER
        if self.stuck:
            return
        if self.serving:
            # Its own limit is no matter: the kubelet's grace ends it.
            self._command(out, actions.Verb.DRAIN, max(0.0, left_s) + BEYOND_REAL_S)
            return
        self._command(out, actions.Verb.KILL)
        # One that had served, and lost its process to a restart of ours, has nothing to drain.
        instance.end(now_s, DRAINED if self.returning else runtime.TERMINATED)
        self._gone(now_s)

    def _reset(self) -> None:
        self.reserving = self.reserved = self.opened = False
        self.asked = self.serving = self.returning = False

    def _gone(self, now_s: float) -> None:
        self._reset()
        self.instance = self.doom = None
        self.moves.stop(now_s)

    def _reserve(self, out: list[actions.Action]) -> None:
        self.reserving = True
        self._command(out, actions.Verb.RESERVE)

    def _serve(self, out: list[actions.Action]) -> None:
        self.asked = True
        if self.stuck or self.cut_off or self.factor != 1.0:
            self._tell_disturbed(out)
        self._command(out, actions.Verb.SERVE)

    def _tell_disturbed(self, out: list[actions.Action]) -> None:
        verb, hung = actions.Verb.DISTURB, self.stuck or self.cut_off
        out.append(actions.Command(verb, 0.0, self.container, hung, self.factor))

    def _command(
        self, out: list[actions.Action], verb: actions.Verb, grace_real_s: float = 0.0
    ) -> None:
        out.append(actions.Command(verb, grace_real_s, self.container))

    def _next_step(self, out: list[actions.Action], at: float) -> None:
        following = self.cold.next_step
        assert following is not None
        self.moves.start(following.work, at)
        self._enter(out, following.phase, at)

    def _enter(self, out: list[actions.Action], phase: wire.Phase, at: float) -> None:
        self.cold.enter(phase, at)
        self._note(out)

    def _note(self, out: list[actions.Action]) -> None:
        if self.leads:
            out.append(actions.Annotate(self.cold.annotation()))

    def _tell(self, out: list[actions.Action], now_s: float) -> bool:
        """Progress, when it is time; and when the phase should end, if that is news."""
        cold = self.cold
        if now_s < cold.progress_at_real_s:
            return False
        cold.progress_at_real_s = now_s + cold.progress_every_real_s
        news = cold.expect(self.moves.pull_ends_s() if self.pulling else self._step_ends_s())
        if news:
            self._note(out)
        return news or not self.pulling or self._progress(now_s) is not None

    def _step_ends_s(self) -> float:
        if self.cold.step is None or self.asked:
            return NEVER
        return self.moves.step_ends_s()

    def _progress(self, now_s: float) -> transfers.Progress | None:
        """How far the running phase is; None if it waits its turn or has no known length."""
        if self.pulling:
            return self.moves.of_pull(now_s)
        runs = self.instance is not None and self.cold.step is not None
        return self.moves.of_step(now_s) if runs else None
