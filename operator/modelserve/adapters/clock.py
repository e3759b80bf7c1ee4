"""The clock of the live system: monotonic time, scaled to emulated seconds."""

import asyncio
import time


class SystemClock:
    """Emulated time runs ``scale`` times as fast as real time; both are monotonic."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def now_s(self) -> float:
        return time.monotonic() * self.scale

    def real_s(self) -> float:
        return time.monotonic()

    def wall_s(self) -> float:
        return time.time()

    async def sleep_real(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
