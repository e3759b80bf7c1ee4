"""Several calls at a time."""

import asyncio
import inspect

import pytest

from servelab.node import together


async def test_results_come_in_order() -> None:
    async def late(number: int) -> int:
        for _ in range(10 - number):
            await asyncio.sleep(0)
        return number

    assert await together.gather(map(late, range(5))) == list(range(5))


async def test_only_a_few_run_at_once() -> None:
    running, most = 0, 0

    async def call() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await together.gather(call() for _ in range(100))
    assert most == together.AT_ONCE


async def test_after_a_failure_no_further_call_begins() -> None:
    begun = 0

    async def failing() -> None:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0)
        raise ValueError(str(begun))

    with pytest.raises(ValueError, match=str(together.AT_ONCE)):
        await together.gather(failing() for _ in range(100))
    assert begun == together.AT_ONCE


@pytest.mark.filterwarnings("error")
async def test_calls_that_have_not_begun_when_it_is_cut_short_are_given_up() -> None:
    async def call() -> None:
        await asyncio.Event().wait()

    calls = [call() for _ in range(100)]
    work = asyncio.create_task(together.gather(calls))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait([work])
    assert {inspect.getcoroutinestate(each) for each in calls} == {inspect.CORO_CLOSED}
