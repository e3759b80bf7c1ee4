"""Timers for one driver: to the microsecond where the kernel has timer files, else the loop's.

uvloop counts in whole milliseconds, which is half a millisecond late on average.
"""

import asyncio
import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol

LOOP_TICK_S = 0.001
# Of <sys/timerfd.h>: O_NONBLOCK | O_CLOEXEC.
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_CLOCK_MONOTONIC = 1


class Handle(Protocol):
    """What was called for later."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """What a driver needs of an event loop; it waits for one call at a time.

    ``tick_s``: the steps that delays count in.
    """

    @property
    def tick_s(self) -> float: ...

    def call_soon(self, callback: Callable[[], object]) -> Handle: ...

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Handle: ...

    def close(self) -> None:
        """Give back what is held of the system; the next call takes it again."""


class LoopTimers:
    """The timers of an event loop."""

    tick_s = LOOP_TICK_S

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_soon(self, callback: Callable[[], object]) -> Handle:
        return self._loop.call_soon(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Handle:
        return self._loop.call_later(delay_s, callback)

    def close(self) -> None:
        """Nothing is held."""


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Moment), ("value", _Moment))


class FileTimers:
    """A timer file of Linux, which the loop watches like a socket."""

    tick_s = 0.0

    def __init__(self, loop: asyncio.AbstractEventLoop, libc: Any) -> None:
        self._loop = loop
        self._libc = libc
        self._file = -1
        self._callback: Callable[[], object] | None = None
        self._setting = _Setting()
        self._setting_at = ctypes.byref(self._setting)

    def call_soon(self, callback: Callable[[], object]) -> Handle:
        return self._loop.call_soon(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Handle:
        if self._file < 0 and not self._open():
            return self._loop.call_later(max(delay_s, LOOP_TICK_S), callback)
        self._callback = callback
        value = self._setting.value
        # Nothing is what stops it.
        value.seconds, value.nanoseconds = divmod(max(1, int(delay_s * 1e9)), 1_000_000_000)
        self._libc.timerfd_settime(self._file, 0, self._setting_at, None)
        return self

    def cancel(self) -> None:
        """Call nothing; that the file still wakes the loop once is no harm."""
        self._callback = None

    def close(self) -> None:
        """Close the file."""
        self._callback = None
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def _open(self) -> bool:
        """Whether there is a file: a process may have too many."""
        self._file = self._libc.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self._file >= 0:
            self._loop.add_reader(self._file, self._ring)
        return self._file >= 0

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it was set anew meanwhile
            os.read(self._file, 8)
            callback, self._callback = self._callback, None
            if callback is not None:
                callback()


@functools.cache
def _library() -> Any:
    """The C library, if it has timer files."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "timerfd_create") else None


def of(loop: asyncio.AbstractEventLoop) -> Timers:
    """The finest timers that there are for this loop."""
    library = _library()
    return LoopTimers(loop) if library is None else FileTimers(loop, library)
