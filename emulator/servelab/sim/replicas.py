"""One replica: waiting for GPUs, starting, serving with the engine's own core, draining, gone."""

import math
from enum import StrEnum
from typing import Protocol

from modelserve.decide import fleet, observation
from servelab.engine.core.sequences import CoreRequest, Finish
from servelab.engine.core.stepping import EngineCore
from servelab.node.faults import fault
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.nodes import Node
from servelab.sim.starting import ColdStart

# A step due at the very instant of another event starts with this much room.
MOMENT_S = 1e-9

State = observation.ReplicaState


class Stage(StrEnum):
    """Where a replica is in its life."""

    PENDING = "Pending"  # no node has room
    STARTING = "Starting"
    READY = "Ready"
    GONE = "Gone"


class Owner(Protocol):
    """Who hears of a replica."""

    def finished(self, replica: "Replica", finish: Finish) -> None:
        """A request has its last token, at ``finish.at_s``."""

    def drained(self, replica: "Replica", now_s: float) -> None:
        """A terminating replica has nothing left to do, or no time left."""

    def engine_for(self, replica: "Replica") -> EngineCore:
        """A new engine, which is about to serve."""

    def served(self, replica: "Replica", now_s: float) -> None:
        """Its engine answers, for the first time or again."""

    def turned(self, replica: "Replica", now_s: float) -> None:
        """It is ready, or no longer; or its container has ended."""

    def evicted(self, replica: "Replica", now_s: float) -> None:
        """It is to be deleted, for its node's sake."""

    def arrived(self, node: Node, now_s: float) -> None:
        """The node has an image, or weights in its memory, that it did not have."""


class Replica:
    """One pod and its engine. It stays in step with the agenda by itself."""

    def __init__(
        self,
        uid: str,
        image: str,
        memory_bytes: int,
        owner: Owner,
        agenda: Agenda,
        created_s: float,
    ) -> None:
        self.uid = uid
        self.image = image
        self.memory_bytes = memory_bytes
        self.created_s = created_s
        self.stage = Stage.PENDING
        self.terminating = False
        self.leaving = False  # marked by a deletion cost: gateways send it nothing
        self.deletion_cost: int | None = None
        self.node: Node | None = None
        self.start: ColdStart | None = None
        self.bound_s: float | None = None
        self.ready_s: float | None = None
        self.started_s: float | None = None  # bound, or begun again after it had served
        self.unschedulable_s: float | None = None
        self.idle_s = 0.0  # seconds ready without any request
        self.open = 0  # requests in the engine
        self.core: EngineCore | None = None
        self.unready = False  # to Kubernetes, although its engine has started
        self.faults = fault.NONE
        self._cut_off = False
        self._grace_s: float | None = None  # asked of a kubelet that does not hear it
        self._idle_since_s = math.inf
        self._owner = owner
        self._agenda = agenda
        self._due_s = math.inf

    # --- life -------------------------------------------------------------------------------------

    def bind(self, node: Node, start: ColdStart, now_s: float) -> None:
        """It has its GPUs, and its cold start begins."""
        self.node, self.start = node, start
        self.bound_s = self.started_s = now_s
        self.stage, self.unschedulable_s = Stage.STARTING, None

    def serve(self, now_s: float) -> None:
        """Its engine answers."""
        self.core, self.stage = self._owner.engine_for(self), Stage.READY
        self._idle_since_s = now_s
        self.ready_s = now_s
        self._owner.served(self, now_s)

    def crash(self, now_s: float) -> None:
        """Its container ends, with what its engine had."""
        if self.start is not None:
            if self.stage is Stage.READY:
                self._idle(now_s)
                self.core, self.stage, self._due_s = None, Stage.STARTING, math.inf
                self.ready_s, self.started_s = None, now_s
            self.start.crash(now_s)

    def fell(self, now_s: float) -> None:
        """Its start has come to nothing, or begins anew."""
        self._owner.turned(self, now_s)

    def arrived(self, node: Node, now_s: float) -> None:
        """The node has something that it did not have."""
        self._owner.arrived(node, now_s)

    def terminate(self, grace_s: float, now_s: float) -> None:
        """Asked to go: an engine that serves finishes its streams first, within the grace."""
        self.terminating = True
        if self._cut_off:
            self._grace_s = grace_s
        elif self.open:
            self._agenda.at(now_s + grace_s, Turn.LIFE, self._grace_over)
        else:
            self._owner.drained(self, now_s)

    def end(self, now_s: float) -> None:
        """It is gone."""
        if self.start is not None:
            self.start.give_up(now_s)
        self._idle(now_s)
        self.core = None
        self.stage, self._due_s = Stage.GONE, math.inf

    def _grace_over(self, now_s: float) -> None:
        if self.stage is not Stage.GONE:
            self._owner.drained(self, now_s)

    # --- its node ---------------------------------------------------------------------------------

    def cut(self, *, off: bool, now_s: float) -> None:
        """Its kubelet is out of reach, or back and hears what it missed.

        What became of a start on a node thought dead is told from the return on.
        """
        self._cut_off = off
        if not off and self.node is not None and self.node.dead and self.state is State.STARTING:
            self.started_s = now_s
        grace_s, self._grace_s = self._grace_s, None
        if not off and grace_s is not None:
            self.terminate(grace_s, now_s)

    def judge(self, *, alive: bool, now_s: float) -> None:
        """What Kubernetes thinks of it: that it is ready if its engine is, or that it is not."""
        if self.unready is alive:
            self.unready = not alive
            if self.stage is Stage.READY:
                self.started_s = now_s
            self._owner.turned(self, now_s)

    def evict(self, now_s: float) -> None:
        """It is deleted, with its grace."""
        if not self.terminating:
            self._owner.evicted(self, now_s)

    def vanish(self, now_s: float) -> None:
        """Its machine is gone."""
        if not self.terminating:
            self._owner.evicted(self, now_s)
        if self.stage is not Stage.GONE:
            self._owner.drained(self, now_s)

    # --- work -------------------------------------------------------------------------------------

    def submit(self, request: CoreRequest, now_s: float) -> None:
        """Hand it to the engine. Raises what the engine's core does."""
        assert self.core is not None, "only replicas that serve are sent requests"
        self.core.submit(request, now_s)
        if not self.open:
            self._idle(now_s)
        self.open += 1
        self._set(now_s)

    def hang(self, *, hung: bool, now_s: float) -> None:
        """Its engine computes nothing, or goes on."""
        if self.core is not None:
            self._settle(now_s, until_finish=False)
        if self.core is not None:
            if hung:
                self.core.hold(now_s)
            else:
                self.core.release(now_s)
            self._set(now_s)

    def catch_up(self, now_s: float) -> None:
        """Bring the engine's queue up to now; one that nobody waits in stays as it is."""
        if self.core is not None and self.core.waiting:
            self._settle(now_s, until_finish=False)
            self._set(now_s)

    def _set(self, now_s: float) -> None:
        """Come back no later than the next end of a request can be."""
        due_s = self.core.no_finish_before_s() if self.open and self.core is not None else None
        if due_s is None:
            self._due_s = math.inf
            return
        due_s = max(due_s, now_s)
        if due_s != self._due_s:
            self._due_s = due_s
            self._agenda.at(due_s, Turn.WORK, self._work)

    def _work(self, now_s: float) -> None:
        """Run to the next end of a request, or as far as nothing else can come in between."""
        if now_s != self._due_s:
            return
        self._due_s = math.inf
        self._settle(max(self._agenda.next_s, now_s + MOMENT_S), until_finish=True)
        if self._due_s == math.inf:
            self._set(now_s)

    def _settle(self, until_s: float, *, until_finish: bool) -> None:
        assert self.core is not None, "only what serves works"
        for output in self.core.settle(until_s, until_finish=until_finish):
            for finish in output.finished:
                self._agenda.pass_to(finish.at_s)
                self.open -= 1
                if not self.open:
                    self._idle_since_s = finish.at_s
                self._owner.finished(self, finish)
        if self.terminating and not self.open and self.stage is Stage.READY:
            self._owner.drained(self, self._agenda.now_s)

    def _idle(self, now_s: float) -> None:
        if self._idle_since_s < now_s:
            self.idle_s += now_s - self._idle_since_s
        self._idle_since_s = math.inf

    # --- what others see --------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """As Kubernetes says."""
        return self.stage is Stage.READY and not self.unready

    @property
    def state(self) -> State:
        """As the operator sees the pod."""
        if self.terminating:
            return State.TERMINATING
        if self.stage is Stage.PENDING:
            return State.PENDING if self.unschedulable_s is None else State.UNSCHEDULABLE
        if self.start is not None and self.start.broken:
            return State.STUCK
        return State.READY if self.ready else State.STARTING

    def observed(self, in_flight: int, now_s: float) -> observation.Replica:
        """For a decision, with the engine's own figures as of now."""
        core, start, state = self.core, self.start, self.state
        starting = start is not None and state is State.STARTING
        return observation.Replica(
            self.uid,
            self.uid,
            state,
            self.created_s,
            self.node.name if self.node else "",
            self.started_s,
            None if self.unready else self.ready_s,
            start.expected_s(now_s) if start and starting else None,
            start.predicted_s if start else None,
            self.unschedulable_s,
            in_flight,
            float(core.waiting) if core else None,
            float(core.running) if core else None,
            self.deletion_cost,
            self.node is not None and self.node.dead,
        )

    def routed(self) -> fleet.Replica:
        """For a gateway."""
        return fleet.Replica(
            uid=self.uid,
            ready=self.ready,
            leaving=self.leaving or self.terminating,
            terminating=self.terminating,
            name=self.uid,
            address=self.uid if self.stage is Stage.READY else "",
        )
