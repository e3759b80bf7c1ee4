"""The demand that this gateway tells the operator: pushed when it matters, else once a second.

What an operator must know at once (a first held request) is pushed within some milliseconds; the
comings and goings of requests in flight are told at most twenty times a second.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from modelserve import ports
from modelserve.api import wire
from modelserve.api.keys import Key
from modelserve.decide import holding
from modelserve.gateway import dispatch

URGENT_GAP_REAL_S = wire.SNAPSHOT_DELAY_REAL_S / 2
OTHER_GAP_REAL_S = 0.05


@dataclass(frozen=True, slots=True)
class Mark:
    """The figures whose change matters."""

    held: int = 0
    open: int = 0  # held + in flight
    admitted: tuple[str, ...] = ()

    @classmethod
    def of(cls, machine: holding.Holding) -> "Mark":
        """The figures now."""
        return cls(machine.held, machine.held + machine.in_flight, machine.admitted)


def is_urgent(told: Mark, now: Mark) -> bool:
    """Whether held requests or admitted replicas changed so that the operator must know at once."""
    return _matters(told.held, now.held) or told.admitted != now.admitted


def is_worth_telling(told: Mark, now: Mark) -> bool:
    """Whether any figure went from none to some, from some to none, or doubled."""
    return is_urgent(told, now) or _matters(told.open, now.open)


def _matters(told: int, now: int) -> bool:
    return (told == 0) != (now == 0) or now >= 2 * told > 0


@dataclass(slots=True, eq=False)
class _Reader:
    """One open stream: what it was told last, and whether there is news."""

    told: dict[Key, Mark] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    urgent: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    """Snapshots for any number of readers."""

    def __init__(self, dispatcher: dispatch.Dispatcher, gateway: str, epoch: str) -> None:
        self.gateway = gateway
        self.epoch = epoch
        self._dispatcher = dispatcher
        self._sequence = 0
        self._readers: set[_Reader] = set()
        dispatcher.listen(self.note)

    def note(self, key: Key) -> None:
        """See whether this model's figures are worth telling."""
        if not self._readers:
            return
        now = Mark.of(self._dispatcher.machine(key))
        for reader in self._readers:
            told = reader.told.get(key, Mark())
            if is_worth_telling(told, now):
                reader.news.set()
                if is_urgent(told, now):
                    reader.urgent.set()

    def snapshot(self) -> wire.DemandSnapshot:
        """All models that had any traffic."""
        self._sequence += 1
        now_real_s = self._dispatcher.clock.real_s()
        models = (m.demand(k.namespace, k.name, now_real_s) for k, m in self._dispatcher.items())
        told = tuple(m for m in models if m.arrivals or m.refused_recently or m.fenced)
        return wire.DemandSnapshot(self.gateway, self.epoch, self._sequence, told)

    async def lines(self) -> AsyncIterator[bytes]:
        """Snapshots as lines of JSON, for ever; a full one first."""
        reader = _Reader()
        self._readers.add(reader)
        try:
            while True:
                reader.news.clear()
                reader.urgent.clear()
                reader.told = {k: Mark.of(m) for k, m in self._dispatcher.items()}
                yield json.dumps(self.snapshot().to_json()).encode() + b"\n"
                await self._until_due(reader)
        finally:
            self._readers.discard(reader)

    async def _until_due(self, reader: _Reader) -> None:
        clock = self._dispatcher.clock
        began_real_s = clock.real_s()
        await _wait(reader.news, clock, wire.SNAPSHOT_REAL_S)
        since_real_s = clock.real_s() - began_real_s
        if not reader.urgent.is_set() and since_real_s < OTHER_GAP_REAL_S:
            await _wait(reader.urgent, clock, OTHER_GAP_REAL_S - since_real_s)
            since_real_s = clock.real_s() - began_real_s
        # A burst of arrivals becomes one snapshot, not one each.
        if since_real_s < URGENT_GAP_REAL_S:
            await clock.sleep_real(URGENT_GAP_REAL_S - since_real_s)


async def _wait(event: asyncio.Event, clock: ports.Clock, limit_real_s: float) -> None:
    if event.is_set():
        return
    waiter = asyncio.ensure_future(event.wait())
    try:
        await dispatch.first(waiter, clock.sleep_real(limit_real_s))
    finally:
        waiter.cancel()
