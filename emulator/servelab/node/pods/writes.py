"""Room for writes to the API server: what pods are goes first, what is told of them behind it.

So a hundred pods that start at once are seen sooner: what phases they are in, before what was said.
"""

import asyncio
import contextlib

STATUSES_AT_ONCE, EVENTS_AT_ONCE = 40, 24
# With so many statuses on their way or waiting, the server has nothing to do but them.
FEW = 4
PATIENCE_REAL_S = 1.0


class Statuses:
    """``async with`` it for each write of a pod."""

    def __init__(self, at_once: int = STATUSES_AT_ONCE) -> None:
        self.few = asyncio.Event()
        self.few.set()
        self._room = asyncio.Semaphore(at_once)
        self._wanted = 0

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
        if self._wanted <= FEW:
            self.few.set()
        else:
            self.few.clear()


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
