"""One replica: waiting for GPUs, starting, serving with the engine's own core, draining, gone."""

import math
from enum import StrEnum
from typing import Protocol

from modelserve.decide import coldstart, fleet, observation
from servelab.engine.core.sequences import CoreRequest, Finish
from servelab.engine.core.stepping import EngineCore
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


class Replica:
    """One pod and its engine. It stays in step with the agenda by itself."""

    def __init__(self, uid: str, owner: Owner, agenda: Agenda, created_s: float) -> None:
        self.uid = uid
        self.created_s = created_s
        self.stage = Stage.PENDING
        self.terminating = False
        self.leaving = False  # marked by a deletion cost: gateways send it nothing
        self.deletion_cost: int | None = None
        self.node: Node | None = None
        self.start: ColdStart | None = None
        self.bound_s: float | None = None
        self.ready_s: float | None = None
        self.unschedulable_s: float | None = None
        self.idle_s = 0.0  # seconds ready without any request
        self.open = 0  # requests in the engine
        self._idle_since_s = math.inf
        self._core: EngineCore | None = None
        self._owner = owner
        self._agenda = agenda
        self._due_s = math.inf

    # --- life -------------------------------------------------------------------------------------

    def bind(self, node: Node, start: ColdStart, now_s: float) -> None:
        """It has its GPUs, and its cold start begins."""
        self.node, self.start, self.bound_s = node, start, now_s
        self.stage, self.unschedulable_s = Stage.STARTING, None

    def serve(self, core: EngineCore, now_s: float) -> None:
        """Its engine is ready."""
        self._core, self.stage, self.ready_s = core, Stage.READY, now_s
        self._idle_since_s = now_s

    def terminate(self, grace_s: float, now_s: float) -> None:
        """Asked to go: an engine that serves finishes its streams first, within the grace."""
        self.terminating = True
        if self.open:
            self._agenda.at(now_s + grace_s, Turn.LIFE, self._grace_over)
        else:
            self._owner.drained(self, now_s)

    def end(self, now_s: float) -> None:
        """It is gone."""
        if self.start is not None and self.stage is Stage.STARTING:
            self.start.give_up(now_s)
        self._idle(now_s)
        self.stage, self._due_s = Stage.GONE, math.inf

    def _grace_over(self, now_s: float) -> None:
        if self.stage is not Stage.GONE:
            self._owner.drained(self, now_s)

    # --- work -------------------------------------------------------------------------------------

    def submit(self, request: CoreRequest, now_s: float) -> None:
        """Hand it to the engine. Raises what the engine's core does."""
        assert self._core is not None, "only replicas that serve are sent requests"
        self._core.submit(request, now_s)
        if not self.open:
            self._idle(now_s)
        self.open += 1
        self._set(now_s)

    def catch_up(self, now_s: float) -> None:
        """Bring the engine's queue up to now; one that nobody waits in stays as it is."""
        if self._core is not None and self._core.waiting:
            self._settle(now_s, until_finish=False)
            self._set(now_s)

    def _set(self, now_s: float) -> None:
        """Come back no later than the next end of a request can be."""
        assert self._core is not None
        due_s = self._core.no_finish_before_s() if self.open else None
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
        assert self._core is not None
        for output in self._core.settle(until_s, until_finish=until_finish):
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
    def state(self) -> State:
        """As the operator sees the pod."""
        if self.terminating:
            return State.TERMINATING
        if self.stage is Stage.READY:
            return State.READY
        if self.stage is Stage.STARTING:
            return State.STARTING
        return State.PENDING if self.unschedulable_s is None else State.UNSCHEDULABLE

    def observed(self, in_flight: int, now_s: float) -> observation.Replica:
        """For a decision, with the engine's own figures as of now."""
        core, start = self._core, self.start
        state = self.state
        starting = start is not None and state is State.STARTING
        return observation.Replica(
            uid=self.uid,
            name=self.uid,
            state=state,
            created_s=self.created_s,
            node=self.node.name if self.node else "",
            started_s=self.bound_s,
            ready_since_s=self.ready_s,
            expected_ready_s=start.expected_s(now_s) if start and starting else None,
            predicted_s=start.predicted.total_s if start else None,
            unschedulable_since_s=self.unschedulable_s,
            in_flight=in_flight,
            waiting=float(core.waiting) if core else None,
            running=float(core.running) if core else None,
            deletion_cost=self.deletion_cost,
        )

    def routed(self) -> fleet.Replica:
        """For a gateway."""
        return fleet.Replica(
            uid=self.uid,
            ready=self.stage is Stage.READY,
            leaving=self.leaving or self.terminating,
            terminating=self.terminating,
            name=self.uid,
            address=self.uid if self.stage is Stage.READY else "",
        )

    @property
    def cold_start(self) -> coldstart.ColdStart | None:
        """Its cold start as it was, once it is over."""
        done = self.ready_s is not None and self.start is not None
        return self.start.measured if done and self.start else None
