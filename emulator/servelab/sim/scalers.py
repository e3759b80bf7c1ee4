"""Who decides the count, and when: our operator's own path, or another system's policy."""

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from modelserve.api import spec as api
from modelserve.api import wire
from modelserve.decide import record, scaling, settle, state
from servelab.policies import observation as foreign
from servelab.policies.policy import Policy
from servelab.sim.agenda import Turn
from servelab.sim.observing import Observer
from servelab.sim.service import Service

# When a gateway tells, as the live one does it: what an operator must know at once, and the rest
# together with the time for which the operator gathers changes.
URGENT_S = wire.SNAPSHOT_DELAY_REAL_S / 2
OTHER_S = 0.15
# A policy that wants to be called again at once still leaves others their turn.
SOONEST_S = 1e-3
# Until a mark on a pod is seen back on the watch.
WATCH_S = 0.02


@dataclass(frozen=True, slots=True)
class Written:
    """A count that was written, and why."""

    at_s: float
    before: int
    after: int
    reason: str
    message: str


class Scaler(Protocol):
    """Decides for one model whenever it wants to."""

    writes: list[Written]
    decisions: int

    def begin(self, now_s: float) -> None:
        """The run starts."""


class _Waking(ABC):
    """Asks for a look at a time; the earliest asked for counts."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.deployment = service.deployment
        self.writes: list[Written] = []
        self.decisions = 0
        self._due_s = math.inf

    def _at(self, at_s: float | None) -> None:
        if at_s is not None and at_s < self._due_s:
            self._due_s = at_s
            self.service.place.agenda.at(at_s, Turn.DECISION, self._wake)

    def _wake(self, now_s: float) -> None:
        if now_s < self._due_s:
            return
        self._due_s = math.inf
        self.service.deal(now_s)
        self._look(now_s)

    @abstractmethod
    def _look(self, now_s: float) -> None:
        """Observe, decide, write."""

    def _note(self, now_s: float, after: int, reason: str, message: str) -> None:
        if after != self.deployment.count:
            self.writes.append(Written(now_s, self.deployment.count, after, reason, message))


class Operator(_Waking):
    """ModelServe's own: observe, decide, write, with the hand-shake before the last one goes."""

    def __init__(self, service: Service, policy: api.Policy) -> None:
        super().__init__(service)
        service.told, service.on_change = self._told, self._at
        self._observer = Observer(service)
        self._policy = policy
        self._state = state.ScalerState()
        self._settle = settle.Settle()
        self._fences = 0
        self._known = (0, 0)  # held and open requests that the operator was told of last

    def begin(self, now_s: float) -> None:
        """Look once; from then on whenever there is a reason to."""
        self._at(now_s)

    def _told(self, now_s: float) -> None:
        """The gateway's figures changed: when does the operator hear of it?"""
        held, known = self.service.gateway.held, self._known
        if _matters(known[0], held):
            self._at(now_s + URGENT_S)
        elif _matters(known[1], held + self.service.gateway.in_flight):
            self._at(now_s + OTHER_S)
        else:
            self._at(now_s + wire.SNAPSHOT_REAL_S)

    def _look(self, now_s: float) -> None:
        decision = self._decide(now_s)
        gateway = self.service.gateway
        self._known = gateway.held, gateway.held + gateway.in_flight
        for uid in decision.delete_uids:
            if uid in self.deployment.replicas:
                self.deployment.delete(uid, now_s)
        if not decision.changes or decision.desired >= decision.current:
            if decision.deletion_costs:
                self.deployment.mark(dict(decision.deletion_costs), now_s)
            if decision.changes:
                self._write(decision, now_s)
        elif decision.wants_zero:
            self._to_zero(now_s)
        elif decision.deletion_costs:
            self.deployment.mark(dict(decision.deletion_costs), now_s)
            self._at(now_s + WATCH_S)
        else:
            self._write(decision, now_s)
        self._at(decision.revisit_at_s)

    def _decide(self, now_s: float) -> record.Decision:
        self.decisions += 1
        seen, parameters = self._observer.look(now_s, self._state.known.idle)
        retry_s = self._settle.retry_real_s
        if retry_s is not None and retry_s > now_s:
            seen = dataclasses.replace(seen, fence_retry_s=retry_s)
        if parameters.policy is not self._policy:
            parameters = dataclasses.replace(parameters, policy=self._policy)
        decision, self._state = scaling.decide(seen, parameters, self._state, now_s)
        return decision

    def _write(self, decision: record.Decision, now_s: float) -> None:
        self._note(now_s, decision.desired, decision.reason, decision.message)
        self.deployment.scale(decision.desired, decision.victims, now_s)
        # What was written is looked at again, as the watch brings it back.
        self._at(now_s + WATCH_S)

    def _to_zero(self, now_s: float) -> None:
        """Ask for the fence, look again, write; all answers come at once here."""
        uids = [uid for uid, each in self.deployment.replicas.items() if not each.terminating]
        self._fences += 1
        self._settle, acts = settle.begin(self._settle, uids, f"fence-{self._fences}", now_s)
        while acts:
            match acts[0]:
                case settle.AskFence(fence_id, fenced):
                    granted = self.service.fence(fence_id, fenced, now_s)
                    wanted = self._decide(now_s).wants_zero
                    self._settle, acts = settle.answered(self._settle, granted, uids, wanted, now_s)
                case settle.WriteZero():
                    self._write(self._decide(now_s), now_s)
                    self._settle, acts = settle.wrote(self._settle, settle.Outcome.DONE, now_s)
                case settle.Unfence(fence_id):
                    self.service.unfence(fence_id, now_s)
                    acts = acts[1:]
                case settle.ReadCount():
                    self._settle, acts = settle.read(self._settle, self.deployment.count, now_s)


class Rival(_Waking):
    """Another system's policy in the operator's place. What it says is written at once."""

    def __init__(self, service: Service, policy: Policy[Any]) -> None:
        super().__init__(service)
        service.told, service.on_change = self._told, self._at
        self._observer = Observer(service)
        self._policy = policy
        self._state: Any = None

    def begin(self, now_s: float) -> None:
        """It takes over what is there: as many as it never goes below."""
        wanted = self.service.spec.scaling.min_replicas
        least = max(wanted, getattr(self._policy, "min_replicas", 0))
        if least > self.deployment.count:
            self.deployment.scale(least, (), now_s)
        self._state = self._policy.start(self.deployment.count, now_s)
        self._at(now_s)

    def _told(self, now_s: float) -> None:
        if self._policy.woken and self.service.gateway.held and not self.service.serving:
            self._at(now_s)

    def _look(self, now_s: float) -> None:
        self.decisions += 1
        seen, parameters = self._observer.look(now_s)
        shown = foreign.of(seen, parameters, now_s)
        decision, self._state = self._policy.decide(shown, self._state, now_s)
        if decision.changes:
            self._note(now_s, decision.desired, decision.reason, decision.message)
            self.deployment.scale(decision.desired, (), now_s)
        revisit_s = decision.revisit_at_s
        self._at(None if revisit_s is None else max(revisit_s, now_s + SOONEST_S))


def _matters(told: int, now: int) -> bool:
    """As a live gateway judges it: from none to some, from some to none, or doubled."""
    return (told == 0) != (now == 0) or now >= 2 * told > 0
