"""The event loop that servers run on: uvloop's where it is installed, and a process fit for it."""

import asyncio
import gc
import resource
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from servelab.engine.httpd import slices

T = TypeVar("T")

# New objects between collections: a busy server makes some hundred thousand a second, nearly all of
# which go by reference count. A choice: at Python's own 700 the collector takes some 5 % of the
# time.
YOUNG_OBJECTS = 50_000
# So long the loop waits for a thread that reads a large request. Python's own 5 ms would show.
SWITCH_S = 0.0005


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, on the fastest loop there is. The process is for this alone."""
    _prepare()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def _prepare() -> None:
    """Let many connections be open, a step's end be met, and the collector leave what stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    slices.shorten()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    sys.setswitchinterval(SWITCH_S)
