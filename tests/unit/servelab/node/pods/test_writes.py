"""Events go behind statuses, but not for ever."""

import asyncio

from servelab.node.pods import writes


async def hold(statuses: writes.Statuses, until: asyncio.Event) -> None:
    async with statuses:
        await until.wait()


async def tell(events: writes.Events, told: list[str]) -> None:
    async with events:
        told.append("event")


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_event_waits_until_few_statuses_are_left() -> None:
    statuses, done = writes.Statuses(at_once=2), asyncio.Event()
    told: list[str] = []
    events = writes.Events(statuses, patience_real_s=3600.0)
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    telling = asyncio.create_task(tell(events, told))
    await turns()
    assert told == []
    done.set()
    await asyncio.gather(telling, *holding)
    assert told == ["event"]


async def test_an_event_waits_no_longer_than_its_patience() -> None:
    statuses, done = writes.Statuses(), asyncio.Event()
    told: list[str] = []
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    await tell(writes.Events(statuses, patience_real_s=0.0), told)
    assert told == ["event"]
    done.set()
    await asyncio.gather(*holding)


async def test_who_gives_up_waiting_leaves_the_room_to_others() -> None:
    statuses, done = writes.Statuses(at_once=1), asyncio.Event()
    events = writes.Events(statuses, at_once=1, patience_real_s=3600.0)
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    told: list[str] = []
    first = asyncio.create_task(tell(events, told))
    await turns()
    for each in (first, *holding):
        each.cancel()
    await asyncio.gather(first, *holding, return_exceptions=True)
    await asyncio.gather(tell(events, told), hold(statuses, done), _set(done))
    assert told == ["event"]


async def _set(done: asyncio.Event) -> None:
    done.set()
