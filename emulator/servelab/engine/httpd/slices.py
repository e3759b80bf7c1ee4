"""Short slices of the processor: who wakes often and for little is let in soon after it woke.

Linux runs one that has a processor to the end of its slice (about 1.4 ms, seen at ticks of up to
4 ms), unless who wakes has a shorter one (since 6.12). Shares stay the same: it is no priority,
and nobody needs a privilege for it. Beside busy processes the 99th percentile of a token's lateness
was a fifth less in three of six pairs of runs, and the same in the others.
"""

import ctypes
import functools
import os
import platform
import sys
from typing import Any

# The shortest that Linux gives.
SLICE_NS = 100_000
# sched_setattr(2) and sched_getattr(2) by machine.
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}


class _Attributes(ctypes.Structure):
    """``struct sched_attr`` as it first was; of normal tasks ``runtime_ns`` is the slice."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    )


def shorten() -> None:
    """Ask for them for this thread, and those that it starts; nothing where there are none."""
    found = _read()
    if found is not None and found.policy == os.SCHED_OTHER:
        found.runtime_ns = SLICE_NS
        found.flags = 0
        _system().syscall(_CALLS[platform.machine()][0], 0, ctypes.byref(found), 0)


def slice_ns() -> int | None:
    """This thread's slice; None where there is none, 0 where the system does not tell it."""
    found = _read()
    return None if found is None else found.runtime_ns


def _read() -> _Attributes | None:
    """How this thread is scheduled."""
    if _system() is None or platform.machine() not in _CALLS:
        return None
    found = _Attributes()
    call, size = _CALLS[platform.machine()][1], ctypes.sizeof(found)
    failed = _system().syscall(call, 0, ctypes.byref(found), size, 0)
    return None if failed else found


@functools.cache
def _system() -> Any:
    """The C library, where the calls may exist."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
