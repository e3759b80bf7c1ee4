"""Carries out what the holding machines decide: the meeting point of requests and replicas."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from modelserve import ports
from modelserve.api import wire
from modelserve.api.keys import Key
from modelserve.decide import fleet, holding

T = TypeVar("T")

TICK_REAL_S = 0.1  # how late a hold may expire or a fence lapse
# How long the counters of a deleted model are told: one of the same name may come at once.
FORGET_REAL_S = 600.0

Verdict = fleet.Replica | holding.Refusal
Listener = Callable[[Key], None]


class Ticket:
    """One request's place: held until there is a verdict, then in flight or over."""

    __slots__ = ("_future", "held_real_s", "holding", "key", "request_id", "verdict")

    def __init__(self, request_id: int, key: Key, machine: holding.Holding) -> None:
        self.request_id = request_id
        self.key = key
        self.holding = machine
        self.verdict: Verdict | None = None
        self.held_real_s = 0.0
        self._future: asyncio.Future[None] | None = None

    def settle(self, verdict: Verdict) -> None:
        """Say where it goes, or that it goes nowhere."""
        self.verdict = verdict
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def unsettle(self) -> None:
        """It waits once more."""
        self.verdict = None
        self._future = None

    async def wait(self, clock: ports.Clock, limit_real_s: float | None = None) -> Verdict | None:
        """The verdict; None if there is none within the limit."""
        if self.verdict is not None:
            return self.verdict
        began_real_s = clock.real_s()
        self._future = self._future or asyncio.get_running_loop().create_future()
        try:
            if limit_real_s is None:
                await self._future
            else:
                await first(self._future, clock.sleep_real(limit_real_s))
        finally:
            self.held_real_s += clock.real_s() - began_real_s
        return self.verdict


class Dispatcher:
    """All models of this gateway. Everything happens in the event loop; nothing here blocks."""

    def __init__(self, clock: ports.Clock) -> None:
        self.clock = clock
        self._holdings: dict[Key, holding.Holding] = {}
        self._deleted_real_s: dict[Key, float] = {}
        self._tickets: dict[int, Ticket] = {}
        self._ids = itertools.count(1)
        self._listeners: list[Listener] = []
        self._stopping = False

    def listen(self, listener: Listener) -> None:
        """Call it with the key whenever anything about a model may have changed."""
        self._listeners.append(listener)

    # --- requests ---------------------------------------------------------------------------------

    def arrive(self, key: Key, size_bytes: int) -> Ticket:
        """A request for this model; always ``end`` the ticket."""
        machine = self.machine(key)
        ticket = Ticket(next(self._ids), key, machine)
        self._tickets[ticket.request_id] = ticket
        self._apply(key, machine.arrive(ticket.request_id, size_bytes, self.clock.real_s()))
        return ticket

    def complete(self, ticket: Ticket) -> None:
        """Its answer is out, to the last byte."""
        if self._tickets.pop(ticket.request_id, None) is not None:
            effects = ticket.holding.complete(ticket.request_id, self.clock.real_s())
            self._apply(ticket.key, effects)

    def bounce(self, ticket: Ticket, *, reached: bool) -> None:
        """The engine refused the connection, or reset it before the first byte."""
        ticket.unsettle()
        effects = ticket.holding.bounce(ticket.request_id, self.clock.real_s(), reached=reached)
        self._apply(ticket.key, effects)

    def end(self, ticket: Ticket) -> None:
        """Whatever became of it, it is over. May be called twice."""
        if self._tickets.pop(ticket.request_id, None) is not None:
            effects = ticket.holding.drop(ticket.request_id, self.clock.real_s())
            self._apply(ticket.key, effects)

    # --- the world --------------------------------------------------------------------------------

    def update(self, key: Key, terms: holding.Terms, replicas: Iterable[fleet.Replica]) -> None:
        """The ModelServe or its pods changed."""
        machine = self.machine(key)
        self._deleted_real_s.pop(key, None)
        self._apply(key, machine.update(terms, replicas, self.clock.real_s()))

    def remove(self, key: Key) -> None:
        """The ModelServe is gone. Its machine stays a while: counters must not run backwards."""
        if key in self._holdings:
            self.update(key, holding.Terms(closed=holding.Refusal.DELETED), ())
            self._deleted_real_s[key] = self.clock.real_s()

    def admit(self, key: Key, pod_uid: str) -> None:
        """A probe of this pod succeeded."""
        self._apply(key, self.machine(key).admit(pod_uid, self.clock.real_s()))

    def fence(self, request: wire.FenceRequest) -> wire.FenceAnswer:
        """The operator asks to let these pods go."""
        key = Key(request.namespace, request.name)
        machine = self.machine(key)
        answer = machine.fence(request.fence_id, request.pod_uids, self.clock.real_s())
        self._tell(key)
        return answer

    def unfence(self, fence_id: str) -> None:
        """The operator takes its fence back, whichever model it was for."""
        for key, machine in self._holdings.items():
            self._apply(key, machine.unfence(fence_id, self.clock.real_s()))

    def share(self, share: wire.Share) -> None:
        """The operator deals out the slots."""
        key = Key(share.namespace, share.name)
        effects = self.machine(key).set_share(share.in_flight_per_replica, self.clock.real_s())
        self._apply(key, effects)

    def advance(self) -> None:
        """Let expire what has expired."""
        now_real_s = self.clock.real_s()
        for key, machine in self._holdings.items():
            wake = machine.next_wake()
            if wake is not None and wake <= now_real_s:
                self._apply(key, machine.advance(now_real_s))
        for key, at_real_s in tuple(self._deleted_real_s.items()):
            if now_real_s - at_real_s >= FORGET_REAL_S and not self._holdings[key].in_flight:
                del self._holdings[key], self._deleted_real_s[key]

    async def keep_time(self) -> None:
        """Advance for ever."""
        while True:
            await self.clock.sleep_real(TICK_REAL_S)
            self.advance()

    def stop(self) -> None:
        """Reject what is held and what still comes."""
        self._stopping = True
        for key, machine in self._holdings.items():
            self._apply(key, machine.stop(self.clock.real_s()))

    # --- what is ----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """Held requests of all models."""
        return sum(machine.held for machine in self._holdings.values())

    @property
    def in_flight(self) -> int:
        """Requests in flight, of all models."""
        return sum(machine.in_flight for machine in self._holdings.values())

    def items(self) -> Iterator[tuple[Key, holding.Holding]]:
        """Every model there is or was, with its machine."""
        return iter(tuple(self._holdings.items()))

    def machine(self, key: Key) -> holding.Holding:
        """The machine of this model. One that is not known yet accepts nothing but fences."""
        machine = self._holdings.get(key)
        if machine is None:
            unknown = holding.Terms(closed=holding.Refusal.DELETED)
            due_real_s = self.clock.real_s() + wire.SHARE_AWAITED_REAL_S
            machine = holding.Holding(unknown, self.clock.scale, due_real_s)
            self._holdings[key] = machine
            # An operator may tell of a model that we see nothing of: then it is forgotten again.
            self._deleted_real_s[key] = self.clock.real_s()
            if self._stopping:
                machine.stop(self.clock.real_s())
        return machine

    def _apply(self, key: Key, effects: Sequence[holding.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, holding.Reject):
                self._tickets.pop(effect.request_id).settle(effect.refusal)
                continue
            ticket = self._tickets[effect.request_id]
            replica = ticket.holding.replica(effect.pod_uid)
            assert replica is not None, "only replicas that are there are picked"
            ticket.settle(replica)
        self._tell(key)

    def _tell(self, key: Key) -> None:
        for listener in self._listeners:
            listener(key)


async def first(future: asyncio.Future[T], other: Coroutine[None, None, None]) -> None:
    """Wait for either; the coroutine is cancelled if the future wins."""
    task = asyncio.ensure_future(other)
    both: set[asyncio.Future[Any]] = {future, task}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
