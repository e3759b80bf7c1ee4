"""Events and mere progress go behind what is news of a pod, but not for ever."""

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


async def rest(statuses: writes.Statuses, hurry: asyncio.Event, told: list[str]) -> None:
    await statuses.lull(hurry)
    async with statuses:
        told.append("progress")
        await turns()


async def test_what_can_wait_rests_until_few_statuses_are_left() -> None:
    statuses, done = writes.Statuses(patience_real_s=3600.0), asyncio.Event()
    told: list[str] = []
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    resting = asyncio.create_task(rest(statuses, asyncio.Event(), told))
    await turns()
    assert told == []
    done.set()
    await asyncio.gather(resting, *holding)
    assert told == ["progress"]


async def test_what_can_wait_goes_at_once_when_it_is_in_a_hurry() -> None:
    statuses, done, hurry = (
        writes.Statuses(patience_real_s=3600.0),
        asyncio.Event(),
        asyncio.Event(),
    )
    told: list[str] = []
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    resting = asyncio.create_task(rest(statuses, hurry, told))
    await turns()
    hurry.set()
    await resting
    assert told == ["progress"]
    done.set()
    await asyncio.gather(*holding)


async def test_what_can_wait_rests_no_longer_than_its_patience() -> None:
    statuses, done = writes.Statuses(patience_real_s=0.0), asyncio.Event()
    told: list[str] = []
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    await rest(statuses, asyncio.Event(), told)
    assert told == ["progress"]
    done.set()
    await asyncio.gather(*holding)


async def test_where_many_rest_few_go_at_a_time_and_none_is_forgotten() -> None:
    statuses, done = writes.Statuses(patience_real_s=3600.0), asyncio.Event()
    told: list[str] = []
    holding = [asyncio.create_task(hold(statuses, done)) for _ in range(writes.FEW + 1)]
    await turns()
    resting = [asyncio.create_task(rest(statuses, asyncio.Event(), told)) for _ in range(50)]
    await turns()
    done.set()
    await turns()
    assert 0 < len(told) <= writes.FEW + 1
    await asyncio.gather(*resting, *holding)
    assert len(told) == 50


async def _set(done: asyncio.Event) -> None:
    done.set()
