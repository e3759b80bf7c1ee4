"""Room for writes to the API server: what pods are goes first, what is told of them behind it.

So a hundred pods that start at once are seen sooner: what phases they are in, before what was said.
"""

import asyncio
import collections
import contextlib

# As many as keep an API server on a few cores at work. More would only wait inside it, where a
# newer status cannot take the place of an older one, and each would cost it more.
STATUSES_AT_ONCE, EVENTS_AT_ONCE = 16, 8
# With so many statuses on their way or waiting, the server has nothing to do but them.
FEW = 4
PATIENCE_REAL_S = 1.0


class Statuses:
    """``async with`` it for each write of a pod."""

    def __init__(
        self, at_once: int = STATUSES_AT_ONCE, patience_real_s: float = PATIENCE_REAL_S
    ) -> None:
        self.few = asyncio.Event()
        self.few.set()
        self._room = asyncio.Semaphore(at_once)
        self._patience_real_s = patience_real_s
        self._wanted = 0
        self._resting: collections.deque[asyncio.Event] = collections.deque()
        self._called = 0  # rested, and will go as soon as the event loop lets them

    async def lull(self, hurry: asyncio.Event) -> None:
        """Before a write that can wait: until few are left, or ``hurry`` is set; not for ever."""
        if self.few.is_set() and not self._resting:
            return
        self._resting.append(hurry)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_real_s):
                    await hurry.wait()
        finally:
            if hurry in self._resting:
                self._resting.remove(hurry)
            else:
                self._called -= 1  # it is wanted from now on, or has given up

    async def __aenter__(self) -> None:
        self._want(1)
        try:
            await self._room.acquire()
        except BaseException:
            self._want(-1)
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._room.release()
        self._want(-1)

    def _want(self, more: int) -> None:
        self._wanted += more
        if self._wanted > FEW:
            self.few.clear()
            return
        self.few.set()
        # No more at a time than are few, so that news finds the way free.
        while self._resting and self._wanted + self._called <= FEW:
            self._called += 1
            self._resting.popleft().set()


class Events:
    """``async with`` it for each event: it waits until few statuses are left, but not for ever."""

    def __init__(
        self,
        statuses: Statuses,
        at_once: int = EVENTS_AT_ONCE,
        patience_real_s: float = PATIENCE_REAL_S,
    ) -> None:
        self._statuses = statuses
        self._room = asyncio.Semaphore(at_once)
        self._patience_real_s = patience_real_s

    async def __aenter__(self) -> None:
        await self._room.acquire()
        few = self._statuses.few
        if few.is_set():
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_real_s):
                    await few.wait()
        except BaseException:
            self._room.release()
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._room.release()
