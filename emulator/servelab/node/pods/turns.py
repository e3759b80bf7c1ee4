"""When a pod's life goes on: at the time it is due, and as soon as something has happened.

Straight from the event loop's timers: a task that waits for a time or an event gets there rounds of
the loop later, and with a hundred pods at once a round is long.
"""

import asyncio
import math
from collections.abc import Callable
from typing import TypeVar

NEVER = math.inf
Result = TypeVar("Result")


class Turns:
    """Calls ``turn``, which tells when it is due next, in Unix seconds; infinite for never.

    No turn comes before ``begin`` and after ``end``. What raises is the last: ``failed`` hears it.
    """

    def __init__(
        self,
        turn: Callable[[], float],
        unix_s: Callable[[], float],
        failed: Callable[[Exception], None],
    ) -> None:
        self._turn = turn
        self._unix_s = unix_s
        self._failed = failed
        self._open = False
        self._soon: asyncio.Handle | None = None
        self._due: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The first turn comes soon."""
        self._open = True
        self.soon()

    def soon(self) -> None:
        """Something has happened. Several times until the turn comes are as good as once."""
        if self._open and self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._take)

    def after(self, work: Callable[[], None]) -> None:
        """Do it once, after the turns of others that are due as well; it may fail as a turn may."""
        asyncio.get_running_loop().call_soon(self._guarded, work)

    def end(self) -> None:
        """No turn any more."""
        self._open = False
        for handle in (self._soon, self._due):
            if handle is not None:
                handle.cancel()
        self._soon = self._due = None
        self._turn, self._failed = _never, _nobody

    def _take(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._soon = self._due = None
        due_s = self._guarded(self._turn)
        if self._open and due_s is not None and due_s != NEVER:
            left_s = max(0.0, due_s - self._unix_s())
            self._due = asyncio.get_running_loop().call_later(left_s, self._take)

    def _guarded(self, work: Callable[[], Result]) -> Result | None:
        failed = self._failed
        try:
            return work()
        except Exception as error:
            self.end()
            failed(error)
            return None


def _never() -> float:
    return NEVER


def _nobody(_: Exception) -> None:
    """Hears of nothing."""
