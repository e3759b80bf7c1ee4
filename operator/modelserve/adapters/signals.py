"""SIGTERM and SIGINT as an event, and work that ends when it is set."""

import asyncio
import signal
from collections.abc import Callable, Coroutine

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# What a shell says of a command that Ctrl-C ended.
INTERRUPTED = 128 + signal.SIGINT


def listen(stop: asyncio.Event, told: Callable[[int], object] = lambda number: None) -> None:
    """Set ``stop`` at either signal, whoever handled it until now; ``told`` hears which it was."""
    loop = asyncio.get_running_loop()

    def hear(number: int) -> None:
        told(number)
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, hear, number)


def unlisten() -> None:
    """Give the signals back to their default."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.remove_signal_handler(number)


async def unless_stopped(work: Coroutine[None, None, None], stop: asyncio.Event) -> bool:
    """Do it to its end, or cancel it at the signal; False in that case. Raises what it raises."""
    task = asyncio.ensure_future(work)
    waiter = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        task.result()
        return True
    finally:
        for each in (task, waiter):
            each.cancel()
        await asyncio.gather(task, waiter, return_exceptions=True)
