"""Timers on a real loop: that they call, not when."""

import asyncio
import os
from collections.abc import Callable

import pytest

from servelab.engine import alarms
from servelab.engine.alarms import FileTimers, LoopTimers, Timers

LATER_S = 1e-4


class FullLibrary:
    """A system that has no file left to give."""

    def timerfd_create(self, clock: int, flags: int) -> int:
        return -1


def _files(loop: asyncio.AbstractEventLoop) -> Timers:
    timers = alarms.of(loop)
    if not isinstance(timers, FileTimers):
        pytest.skip("timer files are Linux's")
    return timers


def _full(loop: asyncio.AbstractEventLoop) -> Timers:
    return FileTimers(loop, FullLibrary())


KINDS = [_files, _full, LoopTimers]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_called_later_is_called_once(
    kind: Callable[[asyncio.AbstractEventLoop], Timers],
) -> None:
    timers, called = kind(asyncio.get_running_loop()), asyncio.Queue[str]()
    timers.call_later(LATER_S, lambda: called.put_nowait("first"))
    assert await called.get() == "first"
    timers.call_later(LATER_S, lambda: called.put_nowait("second"))
    assert await called.get() == "second"
    assert called.empty()
    timers.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_cancelled_is_not_called(
    kind: Callable[[asyncio.AbstractEventLoop], Timers],
) -> None:
    timers, called = kind(asyncio.get_running_loop()), asyncio.Queue[str]()
    timers.call_later(LATER_S, lambda: called.put_nowait("cancelled")).cancel()
    timers.call_later(2 * LATER_S, lambda: called.put_nowait("called"))
    assert await called.get() == "called"
    timers.close()


async def test_a_closed_timer_holds_no_file_and_can_be_used_again() -> None:
    before = os.listdir("/dev/fd")
    timers, called = alarms.of(asyncio.get_running_loop()), asyncio.Event()
    timers.call_later(60.0, called.set)
    timers.close()
    assert os.listdir("/dev/fd") == before
    timers.call_later(LATER_S, called.set)
    await called.wait()
    timers.close()


async def test_no_delay_is_so_short_that_it_never_ends() -> None:
    timers, called = alarms.of(asyncio.get_running_loop()), asyncio.Event()
    timers.call_later(0.0, called.set)
    await called.wait()
    timers.close()
