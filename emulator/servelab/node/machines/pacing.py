"""How fast all who wait go on asking a server that answers none of them."""

import asyncio
from collections.abc import Awaitable, Callable

from modelserve import errors

# So many failures in a row are the server's, and not those of what was asked.
MANY = 5
FIRST_REAL_S, MOST_REAL_S = 0.05, 2.0


class Pace:
    """``async with`` it for each call.

    In trouble one after the other asks, with pauses that grow; the first answer lets all go on. So
    a thousand nodes and their pods are to a server in trouble as one.
    """

    def __init__(
        self, sleep_real: Callable[[float], Awaitable[None]], check: Callable[[], None]
    ) -> None:
        """``check`` raises where nothing may be asked; each call is checked when its turn comes."""
        self._sleep_real = sleep_real
        self._check = check
        self._line = asyncio.Lock()
        self._failures = 0
        self._wish_real_s = 0.0

    async def __aenter__(self) -> None:
        self._check()
        if self._failures >= MANY:
            async with self._line:
                if self._failures >= MANY:
                    await self._sleep_real(self._pause_real_s())
            self._check()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, errors.Unavailable):
            self._failures += 1
            self._wish_real_s = error.retry_after_s or 0.0
        elif error is None or isinstance(error, errors.ClusterError):
            self._failures = 0

    def _pause_real_s(self) -> float:
        grown_real_s = FIRST_REAL_S * 2.0 ** min(self._failures - MANY, 10)
        return max(min(grown_real_s, MOST_REAL_S), self._wish_real_s)
