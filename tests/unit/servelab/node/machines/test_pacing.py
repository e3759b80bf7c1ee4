"""Many who write to a server in trouble are to it as one."""

import asyncio

import pytest

from modelserve import errors, ports, testing
from modelserve.testing import apiserver
from servelab.node.machines import guarded, pacing

AWAY = errors.Unavailable("no route to host")
BUSY = errors.Unavailable("slow down", 429, "TooManyRequests", 5.0)
WRITERS = 200


class Stage:
    """So many that each write until it has succeeded, and try again at once."""

    def __init__(self) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        self.cluster.before_call = self._before
        self.trouble: errors.ClusterError | None = None
        self.may = True
        self.tried = 0
        sleep = self.clock.sleep_real
        self.guarded = guarded.Guarded(self.cluster, lambda: self.may, sleep)

    async def write(self, number: int, pause_real_s: float = 0.1) -> None:
        while True:
            body = {"metadata": {"name": f"n-{number}"}}
            try:
                await self.guarded.create(ports.NODES, None, body)
                return
            except errors.ClusterError:
                await self.clock.sleep_real(pause_real_s)

    def begin(self) -> "list[asyncio.Task[None]]":
        return [asyncio.create_task(self.write(number)) for number in range(WRITERS)]

    def _before(self, call: apiserver.Call) -> None:
        self.tried += 1
        if self.trouble is not None:
            raise self.trouble


async def test_a_server_in_trouble_is_asked_ever_more_seldom_whoever_waits() -> None:
    stage = Stage()
    stage.trouble = AWAY
    tasks = stage.begin()
    await stage.clock.advance(10)
    before = stage.tried
    await stage.clock.advance(60)
    assert stage.tried - before == 60 / pacing.MOST_REAL_S
    for task in tasks:
        task.cancel()


async def test_the_first_answer_lets_all_go_on() -> None:
    stage = Stage()
    stage.trouble = AWAY
    tasks = stage.begin()
    await stage.clock.advance(60)
    stage.trouble = None
    await stage.clock.advance(pacing.MOST_REAL_S)
    await testing.settle(2 * WRITERS)
    assert all(task.done() for task in tasks)


async def test_nobody_asks_before_the_time_that_the_server_wishes() -> None:
    stage = Stage()
    stage.trouble = BUSY
    tasks = stage.begin()
    await stage.clock.advance(10)
    before = stage.tried
    await stage.clock.advance(60)
    assert stage.tried - before == 12
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("error", [errors.Conflict("changed", 409), errors.Invalid("no", 422)])
async def test_what_is_wrong_with_one_object_holds_up_no_other(error: errors.ClusterError) -> None:
    stage = Stage()
    stage.trouble = error
    for _ in range(20):
        with pytest.raises(type(error)):
            await stage.guarded.delete(ports.NODES, None, "n")
    assert stage.tried == 20


async def test_evictions_that_a_budget_forbids_are_no_trouble_of_the_server() -> None:
    stage = Stage()
    stage.trouble = BUSY
    for _ in range(20):
        with pytest.raises(errors.Unavailable):
            await stage.guarded.create(ports.eviction("p"), "default", {"metadata": {"name": "p"}})
    stage.trouble = None
    await stage.write(1)
    assert stage.tried == 21


async def test_who_may_not_write_any_more_does_not_when_its_turn_comes() -> None:
    stage = Stage()
    stage.trouble = AWAY
    tasks = stage.begin()
    await stage.clock.advance(10)
    stage.may, stage.trouble = False, None
    before = stage.tried
    await stage.clock.advance(10)
    assert stage.tried == before
    for task in tasks:
        task.cancel()
