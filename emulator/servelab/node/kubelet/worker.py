"""The pod worker: sync after sync while the pod lives, then its end (kubelet 1.37's pod_workers).

A generator: it yields the time at which it wants to go on, and is sent the time at which it does.
Each sync tells what the last relist saw, then acts; it waits for a relist newer than the last sync.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from servelab.node.kubelet import (
    ended,
    entries,
    gates,
    plan,
    probeworkers,
    resizing,
    restartall,
    starting,
    state,
    stopping,
)
from servelab.node.kubelet.runtime import NEVER, SANDBOX_S, Snapshot
from servelab.node.pods import podspec
from servelab.node.rules import actions, wording

Steps = Generator[float, float, float]

# Between the end of a successful sync and the news that it made, real.
NEWS_REAL_S = 0.02
# A kubelet draws a factor from 1 to 1.5 for each wait between syncs: the middle of it.
JITTER = 1.25
RETRY_REAL_S = 10.0
RESYNC_REAL_S = 60.0
# Between two tries to mount a volume: doubled from the first to the last.
FIRST_MOUNT_REAL_S = 0.5
LAST_MOUNT_REAL_S = 122.0
# To go on at once, whenever that is.
ASAP = 0.0
# From the last status to the removal of the object: cgroup and volumes go first.
CLEAN_UP_REAL_S = 0.4


@dataclass(slots=True)
class Outcome:
    """What a sync came to."""

    terminal: bool = False
    acted: bool = False
    failed: bool = False
    stopped: bool = False  # by an init container that failed: what follows it has to wait
    until_s: float | None = None  # when the first back-off is over


@dataclass(slots=True)
class Worker:
    """``steps`` is advanced by its driver; ``poke`` tells it that there is something to see."""

    pod: state.State
    probers: probeworkers.Workers = field(default_factory=probeworkers.Workers)
    delays: starting.Delays = field(default_factory=starting.Delays)
    resume_s: float = 0.0
    ending: bool = False  # deletion was asked for, or all is over
    finished: bool = False
    _pending: bool = False
    _asked: state.Seen = state.UNSEEN
    _idle: bool = False
    _synced_s: float = float("-inf")
    _steps: Steps | None = None

    def step(self, at_s: float) -> None:
        """Go on until the next wait."""
        if self._steps is None:
            self._steps = self._live(at_s)
            self.resume_s = next(self._steps)
            return
        try:
            self.resume_s = self._steps.send(at_s)
        except StopIteration:
            self.resume_s, self.finished = NEVER, True

    def poke(self, now_s: float) -> None:
        """Something happened: sync again as soon as the present one is over."""
        self._ask()
        if self._idle:
            self.resume_s = min(self.resume_s, now_s)

    def look(self, now_s: float) -> None:
        """What it waits for may have moved."""
        if not self.finished:
            self.resume_s = min(self.resume_s, now_s)

    def end(self) -> None:
        """Its deletion was asked for."""
        self.ending = True
        self._ask()
        if self._idle:
            self.resume_s = ASAP

    def abandon(self) -> None:
        """Nothing of it goes on. Steps that wait hold it, and it holds them, until now."""
        if self._steps is not None:
            self._steps.close()
        self._steps, self.resume_s, self.finished = None, NEVER, True

    def _live(self, now_s: float) -> Steps:
        first = True
        while not self.ending and self.pod.phase not in state.TERMINAL:
            self._take()
            if not first:
                now_s = yield from self._newer(now_s)
                if self.ending:
                    break
            first = False
            outcome = Outcome()
            now_s = yield from self._sync(now_s, outcome)
            self._synced_s = now_s
            if outcome.terminal:
                break
            now_s = yield from self._rest(now_s, outcome)
        return (yield from self._end(now_s))

    def _rest(self, now_s: float, outcome: Outcome) -> Steps:
        """Until the next sync is due, or something happens."""
        delay = RESYNC_REAL_S
        if outcome.failed:
            delay = RETRY_REAL_S if outcome.until_s is None else outcome.until_s - now_s
        due_s = now_s + JITTER * min(RESYNC_REAL_S, max(0.0, delay))
        if outcome.acted and not outcome.failed:
            now_s = yield from starting.wait(now_s, now_s + NEWS_REAL_S)
            if self.pod.relist(now_s):
                self._ask()
        self._idle = True
        while now_s < due_s and not self._pending and not self.ending:
            now_s = yield due_s
        self._idle = False
        return now_s

    def _newer(self, now_s: float) -> Steps:
        """Wait for a relist since the last sync."""
        pod = self.pod
        if max(pod.relisted_s, state.last_tick_s(now_s)) <= self._synced_s:
            now_s = yield from starting.wait(now_s, state.next_tick_s(self._synced_s))
            # What that relist finds is news for one sync more, besides the one that waits for it.
            if pod.relist(now_s):
                self._ask()
        pod.snapshot = pod.cache
        return now_s

    def _report(self, now_s: float, snapshot: Snapshot, *, terminal: bool) -> str:
        """Renew what is told of the containers; returns the pod's phase."""
        pod, before = self.pod, dict(self.pod.told)
        pod.restarting = restartall.asked(pod.pod, snapshot, before=pod.restarting)
        state.report(pod, snapshot, self.probers.judge(pod, snapshot, now_s))
        mains = tuple(spec.name for spec in pod.pod.containers if spec.main)
        initialized = snapshot.started(mains)
        found = entries.phase(pod.pod, pod.told, before, terminal=terminal, initialized=initialized)
        why = ("", "")
        if now_s >= pod.deadline_s:
            pod.emit(None, "DeadlineExceeded", wording.DEADLINE)
            found, why = "Failed", ("DeadlineExceeded", wording.DEADLINE)
        over = found in state.TERMINAL or restartall.done(pod.pod, snapshot)
        pod.restarting = pod.restarting and not over
        state.settle(pod, now_s, found, why)
        return pod.phase

    def _sync(self, now_s: float, outcome: Outcome) -> Steps:
        pod = self.pod
        resizing.note(pod, pod.snapshot)
        if self._report(now_s, pod.snapshot, terminal=False) in state.TERMINAL:
            outcome.terminal = True
            return now_s
        now_s = yield from self._mount(now_s)
        if self.ending:
            return now_s
        if pod.missing.claims:
            pod.emit(None, "FailedMount", pod.missing.claims, kind="Warning")
            outcome.failed = True
            return now_s
        self.probers.add(pod.pod, now_s)
        outcome.acted = resizing.act(pod)
        if outcome.acted:
            self._ask()
        todo = plan.compute(pod, self.probers)
        if todo.taken:
            outcome.acted = True
            self._ask()
            return (yield from stopping.take(pod, todo.taken, now_s))
        if todo.kill_pod:
            outcome.acted = True
            return (yield from stopping.kill_pod(pod, now_s, pod.pod.grace_real_s))
        if pod.snapshot.sandbox == "absent":
            if pod.missing.devices:
                why = wording.not_prepared(pod.missing.devices)
                pod.emit(None, "FailedPrepareDynamicResources", why, kind="Warning")
                return now_s  # No failure to a kubelet: it comes again with its usual sync.
            now_s = yield from self._sandbox(now_s)
            outcome.acted = True
        for kill in todo.kills:
            outcome.acted = True
            now_s = yield from self._kill(kill, now_s)
        now_s = yield from self._start_all(todo.added, now_s, outcome, stop_at_failure=False)
        now_s = yield from self._start_all(todo.inits, now_s, outcome, stop_at_failure=True)
        if not outcome.stopped:
            now_s = yield from self._start_all(todo.starts, now_s, outcome, stop_at_failure=False)
        return now_s

    def _mount(self, now_s: float) -> Steps:
        """Wait for the volumes, told of each try that fails."""
        pause = FIRST_MOUNT_REAL_S
        while (faults := self._unmounted()) and not self.ending:
            for fault in faults:
                self.pod.emit(None, "FailedMount", fault, kind="Warning")
            due_s, pause = now_s + pause, min(2 * pause, LAST_MOUNT_REAL_S)
            self._idle = True
            while now_s < due_s and not self.ending:
                now_s = yield due_s
            self._idle = False
        return now_s

    def _unmounted(self) -> Sequence[str]:
        """The events about volumes that cannot be mounted now."""
        said = {
            volume: why
            for behavior in self.pod.around.behaviors.values()
            for volume, why in behavior.mount_errors.items()
        }
        return [*self.pod.missing.volumes, *(wording.mount_failed(*each) for each in said.items())]

    def _sandbox(self, now_s: float) -> Steps:
        pod = self.pod
        now_s = yield from starting.wait(now_s, now_s + SANDBOX_S / pod.scale)
        pod.cri.sandbox = pod.sandbox = "ready"
        pod.changed(now_s)
        state.write(pod, now_s)
        return now_s

    def _start_all(
        self,
        specs: Sequence[podspec.Container],
        now_s: float,
        outcome: Outcome,
        *,
        stop_at_failure: bool,
    ) -> Steps:
        for spec in specs:
            outcome.acted = True
            began = starting.start(self.pod, self.delays, spec, now_s)
            failed, now_s = yield from starting.timed(began, now_s)
            if failed is None:
                self.pod.failures.pop(spec.name, None)
                continue
            outcome.failed = True
            self.pod.failures[spec.name] = failed.why
            if failed.until_s is not None:
                outcome.until_s = min(failed.until_s, outcome.until_s or NEVER)
            if stop_at_failure and not spec.sidecar:
                outcome.stopped = True
                break
        return now_s

    def _kill(self, kill: plan.Kill, now_s: float) -> Steps:
        instance = self.pod.cri.instances[kill.spec.name][0]
        self.pod.emit(kill.spec, "Killing", kill.message)
        stopping.stop(self.pod, kill.spec, instance, kill.grace_real_s, now_s)
        return (yield from stopping.until_ended(self.pod, kill.spec, instance, now_s))

    def _ask(self) -> None:
        """A sync is asked for; it will go by the pod as the API server has it now."""
        self._pending = True
        self._asked = ended.seen(self.pod.pod)

    def _take(self) -> None:
        """A sync begins, or the end: the one that was asked for, or one that is due anyway."""
        if not self._pending or gates.mistaken(self.pod):
            self._ask()
        self.pod.seen, self._pending = self._asked, False

    def _end(self, now_s: float) -> Steps:
        """Terminating, terminated, and, when its deletion was asked for, removed."""
        pod = self.pod
        if self.ending:
            self._take()
        if pod.may_run and pod.accepted_s:
            now_s = yield from self._newer(now_s)
            self._report(now_s, pod.snapshot, terminal=False)
            self.probers.stop_killing()
            pod.ending = True
            now_s = yield from stopping.kill_pod(pod, now_s, stopping.last_grace_real_s(pod.pod))
            self.probers.clear()
            pod.may_run, pod.resizing, self._synced_s = False, 0, now_s
            self._report(now_s, pod.cri.look(now_s), terminal=True)
            if self._pending:  # News came meanwhile: the rest goes by the pod as it was then.
                self._take()
            now_s = yield from self._newer(now_s)
            pod.cgroup = not pod.pod.deleted
            self._report(now_s, pod.snapshot, terminal=True)
            ended.finish(pod, now_s)
        while not (pod.pod.deleted or pod.gone):
            self._idle = True
            now_s = yield NEVER
        if not pod.gone:
            now_s = yield from starting.wait(now_s, now_s + CLEAN_UP_REAL_S)
            pod.out.append(actions.Delete())
        return now_s
