"""A driven core on a clock and timers that move only when told to."""

import random
from collections.abc import Callable, Sequence

import pytest

from modelserve.testing.clock import ManualClock
from servelab.engine import alarms
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.intake import QueueFull
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, Finish, FirstToken, Output
from servelab.engine.core.stepping import EngineCore
from servelab.engine.driver import Driver


class Handle:
    """A callback and its time."""

    def __init__(self, at_real_s: float, callback: Callable[[], object]) -> None:
        self.at_real_s = at_real_s
        self.callback = callback
        self.dropped = False

    def cancel(self) -> None:
        self.dropped = True


class Timers:
    """Runs what is due at its time, or ``early_s`` before as a loop of whole milliseconds may."""

    tick_s = alarms.LOOP_TICK_S

    def __init__(self, clock: ManualClock, early_s: float = 0.0) -> None:
        self.clock = clock
        self.early_s = early_s
        self.handles: list[Handle] = []

    def call_soon(self, callback: Callable[[], object]) -> Handle:
        return self.call_later(0.0, callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Handle:
        early_s = self.early_s if delay_s > self.early_s else 0.0
        handle = Handle(self.clock.real_s() + delay_s - early_s, callback)
        self.handles.append(handle)
        return handle

    def close(self) -> None:
        self.handles.clear()

    async def run(self, real_s: float) -> None:
        """Let so much time pass."""
        end_s = self.clock.real_s() + real_s
        while due := [each for each in self.handles if each.at_real_s <= end_s]:
            first = min(due, key=lambda each: each.at_real_s)
            self.handles.remove(first)
            if not first.dropped:
                # A clock never stands still; that of a test must not for want of digits.
                await self.clock.advance(max(0.0, first.at_real_s - self.clock.real_s()) + 1e-9)
                first.callback()
        await self.clock.advance(end_s - self.clock.real_s())


class Reply:
    """Keeps when it was flushed with how many tokens."""

    streams = True

    def __init__(self, clock: ManualClock, fault: Exception | None = None) -> None:
        self.clock = clock
        self.fault = fault
        self.flushed: list[tuple[float, int]] = []
        self.failed: list[Exception] = []
        self.pending = 0
        self.ended = False

    @property
    def reply(self) -> "Reply":
        return self

    def first(self, first: FirstToken) -> None:
        assert first.prompt_tokens == 8

    def tokens(self, count: int) -> None:
        self.pending += count

    def finish(self, finish: Finish) -> None:
        self.ended = True

    def flush(self) -> None:
        if self.fault is not None:
            raise self.fault
        self.flushed.append((round(self.clock.real_s() - 1000, 4), self.pending))
        self.pending = 0

    def fail(self, error: Exception) -> None:
        self.failed.append(error)


class Observer:
    def __init__(self) -> None:
        self.tokens = 0

    def observe(self, outputs: Sequence[Output]) -> None:
        self.tokens += sum(len(each.ids) * len(each.times_s) for each in outputs)


class Driven:
    def __init__(self, step_s: float = 0.01, early_s: float = 0.0, slots: int = 4) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock, early_s)
        config = CoreConfig(slots, 512, 4096, 1000, queue_limit=2)
        core = EngineCore(config, SteadyLaw(step_s), random.Random(1))
        self.observer = Observer()
        self.driver = Driver(core, self.clock, self.observer, timers=self.timers)

    def ask(self, tokens: int, *names: str, fault: Exception | None = None) -> Reply:
        reply = Reply(self.clock, fault)
        self.driver.submit([(CoreRequest(name, 8, tokens), reply) for name in names])
        return reply


async def test_each_token_is_handed_on_when_its_step_ends() -> None:
    driven = Driven()
    reply = driven.ask(3, "a")
    await driven.timers.run(1.0)
    assert reply.flushed == [(0.01, 1), (0.02, 1), (0.03, 1)]
    assert (reply.ended, driven.driver.open_requests, driven.observer.tokens) == (True, 0, 3)


async def test_a_timer_that_is_early_makes_a_token_late_by_a_millisecond_at_most() -> None:
    driven = Driven(early_s=0.0007)
    reply = driven.ask(3, "a")
    await driven.timers.run(1.0)
    late_s = [at_s - 0.01 * (n + 1) for n, (at_s, _) in enumerate(reply.flushed)]
    assert [count for _, count in reply.flushed] == [1, 1, 1]
    assert 0 <= min(late_s) <= max(late_s) <= 0.001


async def test_tokens_of_steps_shorter_than_a_tick_of_the_timer_go_together() -> None:
    driven = Driven(step_s=0.0005)
    reply = driven.ask(12, "a")
    await driven.timers.run(1.0)
    assert reply.flushed == [(n / 1000, 2) for n in range(1, 7)]


async def test_sequences_of_one_answer_are_flushed_together() -> None:
    driven = Driven()
    reply = driven.ask(1, "a", "b", "c")
    await driven.timers.run(1.0)
    assert reply.flushed == [(0.01, 3)]


async def test_an_answer_that_is_sent_whole_is_flushed_at_its_end_alone() -> None:
    driven = Driven()
    reply = driven.ask(1)
    reply.streams = False
    driven.driver.submit([(CoreRequest("a", 8, 3), reply), (CoreRequest("b", 8, 5), reply)])
    await driven.timers.run(1.0)
    assert reply.flushed == [(0.03, 6), (0.05, 2)]


async def test_a_request_that_comes_amid_a_step_does_not_disturb_the_others() -> None:
    driven = Driven()
    first = driven.ask(3, "a")
    await driven.timers.run(0.013)
    second = driven.ask(1, "b")
    await driven.timers.run(1.0)
    assert first.flushed == [(0.01, 1), (0.02, 1), (0.03, 1)]
    assert second.flushed == [(0.03, 1)]


async def test_a_cancelled_request_gets_nothing_more_and_its_slot_is_free() -> None:
    driven = Driven(slots=1)
    first, second = driven.ask(100, "a"), driven.ask(1, "b")
    await driven.timers.run(0.015)
    driven.driver.cancel("a")
    driven.driver.cancel("unknown")
    await driven.timers.run(1.0)
    assert (first.flushed, second.flushed) == ([(0.01, 1)], [(0.03, 1)])


async def test_requests_that_come_together_are_taken_all_or_none() -> None:
    driven = Driven(slots=1)
    with pytest.raises(QueueFull):
        driven.ask(1, "a", "b", "c", "d")
    await driven.timers.run(1.0)
    assert (driven.driver.open_requests, driven.observer.tokens) == (0, 0)


async def test_a_turn_that_was_late_does_not_make_the_next_one_late() -> None:
    driven = Driven()
    reply = driven.ask(6, "a")
    await driven.timers.run(0.005)
    await driven.clock.advance(0.03)  # the process stood still
    await driven.timers.run(1.0)
    assert reply.flushed == [(0.035, 3), (0.04, 1), (0.05, 1), (0.06, 1)]


async def test_a_reply_that_fails_is_told_and_takes_no_other_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driven = Driven()
    fault = LookupError("no such field")
    broken, sound = driven.ask(5, "a", "b", fault=fault), driven.ask(2, "c")
    await driven.timers.run(1.0)
    assert (broken.failed, sound.flushed) == ([fault], [(0.01, 1), (0.02, 1)])
    assert (driven.driver.open_requests, len(caplog.records)) == (0, 1)


async def test_a_stopped_driver_is_silent() -> None:
    driven = Driven()
    reply = driven.ask(5, "a")
    driven.driver.stop()
    await driven.timers.run(1.0)
    assert reply.flushed == []


async def test_who_wants_to_know_is_told_what_was_sent() -> None:
    driven = Driven()
    told: list[Output] = []
    driven.driver.on_sent = told.extend
    driven.ask(2, "a")
    await driven.timers.run(1.0)
    assert [len(output.times_s) for output in told] == [1, 1]


async def test_tokens_do_not_wait_until_a_burst_of_requests_is_read() -> None:
    driven = Driven()
    first = driven.ask(3, "a")
    await driven.timers.run(0.005)
    for name in ("b", "c"):  # the loop reads, each request taking its time, and runs no timer
        await driven.clock.advance(0.007)
        driven.ask(1, name)
    assert first.flushed == [(0.012, 1)]
    await driven.timers.run(1.0)
    assert first.flushed == [(0.012, 1), (0.02, 1), (0.03, 1)]


async def test_an_aborted_request_is_told_of_its_end() -> None:
    driven = Driven()
    first, second = driven.ask(100, "a"), driven.ask(2, "b")
    await driven.timers.run(0.015)
    assert driven.driver.sinks == [first, second]
    driven.driver.abort([first])
    assert (first.ended, second.ended, driven.driver.open_requests) == (True, False, 1)


async def test_a_held_driver_hands_nothing_on_until_it_is_released() -> None:
    driven = Driven()
    reply = driven.ask(3, "a")
    await driven.timers.run(0.015)
    driven.driver.hold(requeue=False)
    await driven.timers.run(1.0)
    assert (reply.flushed, driven.driver.forget()) == ([(0.01, 1)], False)
    driven.driver.release()
    await driven.timers.run(1.0)
    assert reply.flushed[1:] == [(1.02, 1), (1.03, 1)]
