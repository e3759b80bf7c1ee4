"""Work that ends with a signal."""

import asyncio
import os
import signal

import pytest

from modelserve.adapters import signals


async def nothing() -> None:
    return None


async def failing() -> None:
    raise ValueError("broken")


async def test_work_that_ends_by_itself_says_so() -> None:
    assert await signals.unless_stopped(nothing(), asyncio.Event())


async def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="broken"):
        await signals.unless_stopped(failing(), asyncio.Event())


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_signal_cancels_the_work() -> None:
    stop = asyncio.Event()
    signals.listen(stop)
    try:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        assert not await signals.unless_stopped(forever(), stop)
    finally:
        signals.unlisten()
