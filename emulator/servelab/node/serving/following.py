"""Whoever follows a container's log: lines as they come, until the end or until he has left."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Self

from servelab.node.pods import journal

# Of a follower who has left nobody tells: so often is looked, where a log is silent.
LOOK_REAL_S = 5.0


class Follower:
    """One reader's lines, inside ``with``.

    Of more than a container's log keeps, the oldest go unread: a reader who does not read costs no
    more than the log itself.
    """

    def __init__(self, followed: journal.Journal) -> None:
        self._lines: deque[journal.Line | None] = deque(maxlen=journal.MOST_LINES)
        self._news = asyncio.Event()
        self._stop = followed.follow(self._take)
        if followed.closed:
            self._take(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    @property
    def unread(self) -> int:
        """Lines that have come and were not asked for."""
        return len(self._lines)

    async def next(self) -> journal.Line | None:
        """The next line; None when the container has ended."""
        while not self._lines:
            self._news.clear()
            await self._news.wait()
        return self._lines.popleft()

    async def next_while(
        self, there: Callable[[], bool], sleep_real: Callable[[float], Awaitable[None]]
    ) -> journal.Line | None:
        """The same; None also if the reader is found to be there no more."""
        while not self._lines:
            if not there():
                return None
            await self._pause(sleep_real)
        return self._lines.popleft()

    async def _pause(self, sleep_real: Callable[[float], Awaitable[None]]) -> None:
        """Until there is news, or it is time to look."""
        self._news.clear()
        news = asyncio.ensure_future(self._news.wait())
        time = asyncio.ensure_future(sleep_real(LOOK_REAL_S))
        try:
            await asyncio.wait((news, time), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            time.cancel()

    def _take(self, line: journal.Line | None) -> None:
        self._lines.append(line)
        self._news.set()
