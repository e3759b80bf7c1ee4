"""The keyed work queue: de-duplication, one at a time, back-off, requeue."""

import asyncio
import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from modelserve import workqueue
from modelserve.testing import ManualClock


def schedule() -> workqueue.Schedule[str]:
    return workqueue.Schedule(random.Random(1))


def test_marks_of_one_key_are_taken_once() -> None:
    queue = schedule()
    queue.mark("a", 0)
    queue.mark("a", 0)
    assert (queue.take(1), queue.take(1)) == ("a", None)


def test_a_key_that_is_being_worked_on_comes_back_only_when_it_is_done() -> None:
    queue = schedule()
    queue.mark("a", 0)
    queue.take(1)
    queue.mark("a", 1)
    assert queue.take(1) is None
    queue.done("a")
    assert queue.take(1) == "a"


def test_the_earliest_of_several_marks_counts() -> None:
    queue = schedule()
    queue.mark("a", 9)
    queue.mark("a", 5)
    queue.mark("a", 7)
    assert queue.next_at_real_s() == 5
    assert queue.take(4.9) is None
    assert queue.take(5) == "a"
    assert queue.next_at_real_s() is None


def test_a_done_key_comes_back_when_it_asked_to() -> None:
    queue = schedule()
    queue.mark("a", 0)
    queue.take(0)
    queue.done("a", 3)
    assert (queue.take(2.9), queue.take(3)) == (None, "a")


def test_keys_that_are_worked_on_before_they_are_due_leave_nothing_behind() -> None:
    queue = schedule()
    for turn in range(2000):
        for key in ("a", "b", "c"):
            queue.mark(key, turn)
        while (taken := queue.take(turn)) is not None:
            # One wants to come back at a fixed time, the others later and later.
            queue.done(taken, 5000 if taken == "a" else turn + 3600)
    assert queue.entries <= workqueue.SPARE + 2 * 3
    assert (queue.next_at_real_s(), queue.take(5000), queue.take(5000)) == (5000, "a", None)


def test_the_key_due_longest_is_taken_first() -> None:
    queue = schedule()
    queue.mark("b", 2)
    queue.mark("a", 1)
    assert (queue.take(3), queue.take(3)) == ("a", "b")


def test_failures_back_off_exponentially_with_jitter_up_to_a_minute() -> None:
    queue, waits = schedule(), []
    for _ in range(16):
        queue.mark("a", 0)
        queue.take(1e9)
        waits.append(queue.failed("a", 0))
    assert 0.025 <= waits[0] <= 0.05
    assert all(0.5 <= later / earlier <= 4 for earlier, later in itertools.pairwise(waits[:9]))
    assert 30 <= max(waits) <= 60


def test_a_mark_does_not_cut_a_back_off_short() -> None:
    queue = schedule()
    queue.mark("a", 0)
    queue.take(0)
    at_real_s = queue.failed("a", 0, least_real_s=5)
    queue.mark("a", 0)
    assert at_real_s == 5
    assert (queue.take(4.9), queue.take(5)) == (None, "a")


def test_success_ends_the_back_off() -> None:
    queue = schedule()
    for _ in range(8):
        queue.mark("a", 0)
        queue.take(1e9)
        queue.failed("a", 0)
    queue.take(1e9)
    queue.done("a")
    queue.mark("a", 1)
    assert queue.take(1) == "a"


def test_a_forgotten_key_does_not_come_back() -> None:
    queue = schedule()
    queue.mark("a", 0)
    queue.forget("a")
    assert queue.take(1) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["mark", "take", "done"]))))
def test_a_key_is_never_handed_out_twice_at_once(steps: list[tuple[str, str]]) -> None:
    queue, running = schedule(), set[str]()
    for key, step in steps:
        if step == "mark":
            queue.mark(key, 0)
        elif step == "take" and (taken := queue.take(1)) is not None:
            assert taken not in running
            running.add(taken)
        elif step == "done" and key in running:
            running.discard(key)
            queue.done(key)


async def test_the_queue_works_on_different_keys_at_once_and_on_one_key_in_turn() -> None:
    running: list[str] = []
    seen: list[tuple[str, ...]] = []
    release = asyncio.Event()

    async def work(key: str) -> None:
        assert key not in running
        running.append(key)
        seen.append(tuple(running))
        await release.wait()
        running.remove(key)

    queue = workqueue.WorkQueue(work, ManualClock(), random.Random(1), workers=2)
    async with _running(queue):
        for key in "abab":
            queue.mark(key)
        await _settle()
        assert seen == [("a",), ("a", "b")]
        assert queue.depth == 2
        queue.mark("a")
        release.set()
        await _settle()
    assert len(seen) == 3


async def test_an_error_is_told_and_the_key_tried_again() -> None:
    clock, tried, told = ManualClock(), list[str](), list[float]()

    async def work(key: str) -> None:
        tried.append(key)
        if len(tried) == 1:
            raise ValueError("no")

    queue = workqueue.WorkQueue(
        work, clock, random.Random(1), on_error=lambda key, error, at: told.append(at)
    )
    queue.mark("a")
    async with _running(queue):
        await _settle()
        await clock.advance(1)
        queue.mark("a")
        await _settle()
    assert (len(tried), len(told)) == (2, 1)


class _running:
    def __init__(self, queue: workqueue.WorkQueue[str]) -> None:
        self._queue = queue

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._queue.run())

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
