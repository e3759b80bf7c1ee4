"""What is pushed at once, what soon, and what waits for the second to pass."""

import asyncio
import json
from collections.abc import Sequence
from typing import Self

import pytest

from modelserve.api.keys import Key
from modelserve.decide import fleet, holding
from modelserve.gateway import dispatch, feed

KEY = Key("n", "m")


class ManualClock:
    """A clock that a test moves by hand."""

    scale = 1.0

    def __init__(self) -> None:
        self.time_real_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now_s(self) -> float:
        return self.time_real_s

    def real_s(self) -> float:
        return self.time_real_s

    def wall_s(self) -> float:
        return self.time_real_s

    async def sleep_real(self, seconds: float) -> None:
        event = asyncio.Event()
        self._sleepers.append((self.time_real_s + seconds, event))
        await event.wait()

    async def move(self, seconds: float) -> None:
        """Let time pass, and everything due happen."""
        self.time_real_s += seconds
        due = [event for at, event in self._sleepers if at <= self.time_real_s + 1e-9]
        self._sleepers = [s for s in self._sleepers if s[0] > self.time_real_s + 1e-9]
        for event in due:
            event.set()
        for _ in range(20):
            await asyncio.sleep(0)


class Reader:
    """Takes every line as it comes."""

    def __init__(self, source: feed.Feed) -> None:
        self.lines: list[bytes] = []
        self._task = asyncio.create_task(self._read(source))

    async def _read(self, source: feed.Feed) -> None:
        async for line in source.lines():
            self.lines.append(line)

    def held(self) -> Sequence[int]:
        """Held requests in each snapshot so far."""
        return [sum(m["held"] for m in json.loads(line)["models"]) for line in self.lines]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Bench:
    """A dispatcher with one model, and a reader of its feed, on a manual clock."""

    def __init__(self, slots: int) -> None:
        self.clock = ManualClock()
        self.dispatcher = dispatch.Dispatcher(self.clock)
        self.reader = Reader(feed.Feed(self.dispatcher, "g", "e"))
        self.terms = holding.Terms(slots=slots)
        self.dispatcher.update(KEY, self.terms, ())

    @classmethod
    async def begin(cls, slots: int) -> Self:
        """One that has told its first, empty snapshot."""
        bench = cls(slots)
        await bench.clock.move(0.0)
        return bench

    async def held_after(self, *, arrivals: int, seconds: float) -> Sequence[int]:
        for _ in range(arrivals):
            self.dispatcher.arrive(KEY, 1)
        await self.clock.move(seconds)
        return self.reader.held()


async def test_a_first_held_request_is_told_at_once() -> None:
    bench = await Bench.begin(slots=1)
    assert await bench.held_after(arrivals=0, seconds=0.5) == [0]
    assert await bench.held_after(arrivals=1, seconds=0.0) == [0, 1]
    await bench.reader.close()


async def test_a_burst_is_told_within_ten_milliseconds_in_few_snapshots() -> None:
    bench = await Bench.begin(slots=1)
    await bench.held_after(arrivals=0, seconds=0.5)
    assert await bench.held_after(arrivals=1, seconds=0.0) == [0, 1]
    assert await bench.held_after(arrivals=63, seconds=0.0) == [0, 1]
    assert await bench.held_after(arrivals=0, seconds=0.005) == [0, 1, 64]
    await bench.reader.close()


async def test_without_a_doubling_the_second_passes_first() -> None:
    bench = await Bench.begin(slots=1)
    await bench.held_after(arrivals=4, seconds=1.0)
    assert await bench.held_after(arrivals=3, seconds=0.9) == [0, 4]
    assert await bench.held_after(arrivals=0, seconds=0.1) == [0, 4, 7]
    await bench.reader.close()


async def test_requests_in_flight_are_told_soon_not_each() -> None:
    bench = await Bench.begin(slots=100)
    bench.dispatcher.update(KEY, bench.terms, [fleet.Replica("a", ready=True, address="h:1")])
    await bench.held_after(arrivals=0, seconds=0.01)
    await bench.held_after(arrivals=1, seconds=0.01)
    assert len(bench.reader.lines) == 1
    await bench.held_after(arrivals=0, seconds=0.05)
    assert len(bench.reader.lines) == 2
    await bench.reader.close()


@pytest.mark.parametrize(
    ("told", "now", "urgent", "worth"),
    [
        pytest.param((0, 0), (1, 1), True, True, id="first held"),
        pytest.param((1, 1), (0, 0), True, True, id="last held gone"),
        pytest.param((3, 3), (5, 5), False, False, id="a few more"),
        pytest.param((3, 3), (6, 6), True, True, id="doubled"),
        pytest.param((0, 0), (0, 1), False, True, id="first in flight"),
        pytest.param((0, 1), (0, 0), False, True, id="last in flight gone"),
        pytest.param((0, 2), (0, 3), False, False, id="one more in flight"),
    ],
)
def test_which_changes_matter(
    told: tuple[int, int], now: tuple[int, int], urgent: bool, worth: bool
) -> None:
    assert feed.is_urgent(feed.Mark(*told), feed.Mark(*now)) is urgent
    assert feed.is_worth_telling(feed.Mark(*told), feed.Mark(*now)) is worth


def test_an_admitted_replica_is_told_at_once() -> None:
    assert feed.is_urgent(feed.Mark(1, 1), feed.Mark(1, 1, ("a",)))
