"""The life of one pod on an emulated node, as a state machine: inputs with a time, actions out.

A driver feeds it (``advance``, ``delete``, ``reserved``, ``serving``, ``drained``, ``exited``),
carries out the actions in order, and calls again at ``next_wake_real_s``. Times are Unix seconds,
real; durations of phases are emulated seconds. What is due in the past happens at its due time:
after a gap the pod stands where it would have stood.
"""

from collections.abc import Mapping
from typing import Any

from modelserve.api import names, wire
from servelab.node import actions, containers, engines, podspec, probes, records, starting, wording
from servelab.node.context import NEVER, Context, Host, Stage, State
from servelab.timing import transfers

# Set-up of a pod's sandbox and network, in emulated seconds (a real kubelet took 0.2 s).
SANDBOX_S = 0.1
KILLED = 137


class PodLife:
    """One pod. ``works`` are the image pulls by container; ``engine`` is None for other pods."""

    def __init__(
        self,
        pod: podspec.Pod,
        host: Host,
        pod_ip: str,
        works: Mapping[str, transfers.Work],
        engine: starting.EngineStart | None = None,
        state: State | None = None,
    ) -> None:
        self.context = Context(pod, host, pod_ip, works, engine, state or _fresh(pod))
        if state is None and engine is not None:
            self.context.state.cold = starting.ColdStart(engine, host.scale)

    @property
    def pod(self) -> podspec.Pod:
        return self.context.pod

    @property
    def state(self) -> State:
        return self.context.state

    @property
    def finished(self) -> bool:
        """Nothing will ever happen again."""
        return self.state.stage is Stage.GONE

    def advance(self, now_real_s: float) -> list[actions.Action]:
        """Let everything happen that is due, and return what is to be done, in order."""
        while self._step(now_real_s):
            pass
        taken, self.context.out = self.context.out, []
        return taken

    def next_wake_real_s(self) -> float:
        """When something is due next; infinite if only an input can change anything."""
        state = self.state
        asked = state.deadline_real_s is not None
        if state.stage is Stage.GONE or (state.stage is Stage.OVER and not asked):
            return NEVER
        if state.stage is Stage.STOPPING:
            return state.deadline_real_s or 0.0
        if asked or state.stage is Stage.NEW:
            return 0.0
        if state.stage is Stage.SANDBOX:
            return self._sandbox_due_real_s()
        return min(
            containers.next_wake_real_s(self.context),
            engines.next_wake_real_s(self.context),
            probes.next_wake_real_s(self.context),
        )

    def update(self, pod: podspec.Pod, now_real_s: float) -> None:
        """The object changed: what it says of itself counts from now on."""
        news = pod.generation != self.pod.generation
        self.context.pod = pod
        if news and self.state.stage in (Stage.SANDBOX, Stage.LIVE):
            self.context.write(now_real_s)

    def delete(self, deadline_real_s: float) -> None:
        """Graceful deletion was asked for: containers have until then; again may shorten it."""
        known = self.state.deadline_real_s
        self.state.deadline_real_s = min(deadline_real_s, NEVER if known is None else known)

    def reserved(self, dial: str) -> None:
        """The engine's address is bound; empty for one that will refuse to start."""
        self.state.reserved = True
        if dial:
            self.context.out.append(actions.Annotate({names.DIAL: dial}))

    def serving(self, now_real_s: float) -> None:
        """The engine answers from now on."""
        engines.served(self.context, now_real_s)

    def drained(self, now_real_s: float) -> None:
        """The engine finished its streams and stopped."""
        self._engine_ended(0, now_real_s)

    def exited(self, exit_code: int, now_real_s: float) -> None:
        """The engine ended by itself, or with its worker process."""
        self._engine_ended(exit_code, now_real_s)

    def moved(self, now_real_s: float) -> None:
        """The end of a pull or of the load has moved."""
        engines.moved(self.context, now_real_s)

    def removed(self, now_real_s: float) -> list[actions.Action]:
        """The object is gone, by force: nothing is left to be told."""
        ctx = self.context
        ctx.host.transfers.stop(ctx.load_key, now_real_s * ctx.host.scale)
        return []

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """What the pod's status tells of the container; None if there is none of that name."""
        found = (r.to_json() for r in self.state.records if r.spec.name == container)
        return next(found, None)

    def pulls(self) -> list[str]:
        """Keys of its pulls at the node's image store."""
        return [record.pull_key for record in self.state.records if record.pull_key]

    def _engine_ended(self, exit_code: int, now_real_s: float) -> None:
        record = self.context.engine_record()
        if record is None or not record.running:
            return
        if self.state.stage is Stage.STOPPING:
            record.end(exit_code, now_real_s)
        else:
            containers.crash(self.context, record, exit_code, now_real_s)
        engines.lost(self.context, now_real_s)

    def _step(self, now: float) -> bool:
        state = self.state
        if state.stage is Stage.GONE:
            return False
        if state.deadline_real_s is not None:
            return self._step_stopping(now, state.deadline_real_s)
        if state.stage is Stage.NEW:
            return self._accept(now)
        if state.stage is Stage.SANDBOX:
            due = self._sandbox_due_real_s()
            return now >= due and self._sandbox(due)
        if state.stage is Stage.LIVE:
            steps = (containers.step, engines.step, probes.step)
            return any(step(self.context, now) for step in steps)
        return False

    def _accept(self, now: float) -> bool:
        self.state.accepted_real_s, self.state.stage = now, Stage.SANDBOX
        if self.state.cold is not None:
            engines.enter(self.context, wire.Phase.IMAGE_PULL, now)
        self.context.write(now)
        return True

    def _sandbox_due_real_s(self) -> float:
        return self.state.accepted_real_s + SANDBOX_S / self.context.host.scale

    def _sandbox(self, at: float) -> bool:
        self.state.sandbox, self.state.stage = "ready", Stage.LIVE
        self.context.write(at)
        containers.start_next(self.context, at)
        return True

    def _step_stopping(self, now: float, deadline: float) -> bool:
        ctx, state = self.context, self.state
        if state.stage is Stage.NEW:
            state.stage = Stage.GONE
            ctx.out.append(actions.Delete())
            return True
        if state.stage not in (Stage.STOPPING, Stage.OVER):
            self._stop(now, deadline)
            return True
        record = ctx.engine_record()
        if record is not None and record.running and now >= deadline:
            ctx.command(actions.Verb.KILL)
            record.end(KILLED, now)
        if ctx.running:
            return False
        state.sandbox, state.stage = "gone", Stage.GONE
        ctx.write(now)
        ctx.out.append(actions.Delete())
        return True

    def _stop(self, now: float, deadline: float) -> None:
        ctx = self.context
        ctx.state.stage = Stage.STOPPING
        ctx.host.transfers.stop(ctx.load_key, now * ctx.host.scale)
        for record in ctx.state.records:
            record.probers = []
            record.restart_at_s = record.create_at_s = record.tell_at_s = None
            if record.pull_key:
                # The pod's worker gives up at once; the runtime finishes the pull it began.
                ctx.host.images.abandon(record.pull_key)
                record.pull_key = ""
        running = [record for record in ctx.state.records if record.running]
        for record in running:
            ctx.emit(record, "Killing", wording.stopping(record.spec.name))
        if running:
            ctx.write(now)
        for record in running:
            self._signal(record, deadline, now)

    def _signal(self, record: records.Record, deadline: float, now: float) -> None:
        """SIGTERM: an engine that serves finishes its streams, everything else dies at once."""
        ctx = self.context
        if ctx.is_engine(record) and ctx.state.serving:
            ctx.command(actions.Verb.DRAIN, max(0.0, deadline - now))
            return
        if ctx.is_engine(record):
            ctx.command(actions.Verb.KILL)
        # An engine that had started and lost its process to a restart of ours has nothing to drain.
        lost = ctx.is_engine(record) and record.started and not ctx.state.reserved
        record.end(0 if lost else probes.TERMINATED_BY_SIGNAL, now)


def _fresh(pod: podspec.Pod) -> State:
    waiting = "PodInitializing" if any(c.init for c in pod.containers) else "ContainerCreating"
    return State([records.Record(spec, waiting) for spec in pod.containers])
