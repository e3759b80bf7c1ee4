"""A clock that moves only when told to."""

import asyncio
import heapq
import itertools


class ManualClock:
    """ports.Clock: ``advance`` moves it and wakes the sleepers whose time has come, in order."""

    def __init__(self, scale: float = 1.0, real_s: float = 1000.0, wall_s: float = 1.7e9) -> None:
        self.scale = scale
        self._real_s = real_s
        self._wall_offset_s = wall_s - real_s
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_s(self) -> float:
        return self._real_s * self.scale

    def real_s(self) -> float:
        return self._real_s

    def wall_s(self) -> float:
        return self._real_s + self._wall_offset_s

    def set_wall(self, wall_s: float) -> None:
        """Set the wall clock, as an administrator or NTP may at any time."""
        self._wall_offset_s = wall_s - self._real_s

    def jump(self, real_s: float) -> None:
        """Nothing ran for so long, as when the machine was paused; ``advance`` wakes who is due."""
        self._real_s += real_s

    async def sleep_real(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._real_s + seconds, next(self._order), waker))
        await waker

    async def advance(self, real_s: float) -> None:
        """Let so many real seconds pass; each sleeper runs at its own time."""
        end_s = self._real_s + real_s
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end_s:
            at_s, _, waker = heapq.heappop(self._sleepers)
            self._real_s = max(self._real_s, at_s)
            if not waker.done():
                waker.set_result(None)
            await settle()
        self._real_s = end_s


async def settle(rounds: int = 20) -> None:
    """Let everything that is ready to run do so."""
    for _ in range(rounds):
        await asyncio.sleep(0)
