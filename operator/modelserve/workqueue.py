"""The keyed work queue: every key is worked on by one worker at a time, however often it is marked.

``Schedule`` is the state machine, without clock or tasks; ``WorkQueue`` drives it. All times are
monotonic real seconds.
"""

import asyncio
import heapq
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from modelserve import ports

Key = TypeVar("Key", bound=Hashable)

BACK_OFF_REAL_S = 0.05
BACK_OFF_MOST_REAL_S = 60.0
# So many entries of the heap may be out of date before they are looked through.
SPARE = 64

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Schedule(Generic[Key]):
    """Which key is due when. A key that is being worked on comes back only once it is done."""

    rng: random.Random
    due_real_s: dict[Key, float] = field(default_factory=dict)
    running: set[Key] = field(default_factory=set)
    failures: dict[Key, int] = field(default_factory=dict)
    not_before_real_s: dict[Key, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    _order: int = 0

    def mark(self, key: Key, at_real_s: float) -> None:
        """Want the key worked on at ``at_real_s``, or earlier if it already is to be.

        A key that backs off after a failure waits until its back-off ends.
        """
        at_real_s = max(at_real_s, self.not_before_real_s.get(key, at_real_s))
        known = self.due_real_s.get(key)
        if known is not None and known <= at_real_s:
            return
        self.due_real_s[key] = at_real_s
        if key not in self.running:
            self._push(key, at_real_s)

    def take(self, now_real_s: float) -> Key | None:
        """The key that has been due longest, now running; None if none is due."""
        while self._heap and self._heap[0][0] <= now_real_s:
            at_real_s, _, key = heapq.heappop(self._heap)
            if key in self.running or self.due_real_s.get(key) != at_real_s:
                continue
            del self.due_real_s[key]
            self.running.add(key)
            return key
        return None

    def done(self, key: Key, requeue_at_real_s: float | None = None) -> None:
        """The work succeeded; it wants to come back at ``requeue_at_real_s``, if at all."""
        self.failures.pop(key, None)
        self.not_before_real_s.pop(key, None)
        self._release(key)
        if requeue_at_real_s is not None:
            self.mark(key, requeue_at_real_s)

    def failed(self, key: Key, now_real_s: float, least_real_s: float = 0.0) -> float:
        """The work failed; it comes back after an exponential back-off. Returns when."""
        failures = self.failures[key] = self.failures.get(key, 0) + 1
        longest = min(BACK_OFF_MOST_REAL_S, BACK_OFF_REAL_S * 2.0 ** min(failures - 1, 16))
        at_real_s = now_real_s + max(least_real_s, longest * self.rng.uniform(0.5, 1.0))
        self.not_before_real_s[key] = at_real_s
        self.due_real_s.pop(key, None)
        self._release(key)
        self.mark(key, at_real_s)
        return at_real_s

    def forget(self, key: Key) -> None:
        """The key no longer exists."""
        for table in (self.due_real_s, self.failures, self.not_before_real_s):
            table.pop(key, None)

    @property
    def entries(self) -> int:
        """What is kept, overtaken entries too."""
        return len(self._heap)

    def next_at_real_s(self) -> float | None:
        """When the next key falls due; None if none will by itself."""
        while self._heap:
            at_real_s, _, key = self._heap[0]
            if key not in self.running and self.due_real_s.get(key) == at_real_s:
                return at_real_s
            heapq.heappop(self._heap)
        return None

    def _release(self, key: Key) -> None:
        self.running.discard(key)
        if (at_real_s := self.due_real_s.get(key)) is not None:
            at_real_s = max(at_real_s, self.not_before_real_s.get(key, at_real_s))
            self.due_real_s[key] = at_real_s
            self._push(key, at_real_s)

    def _push(self, key: Key, at_real_s: float) -> None:
        self._order += 1
        heapq.heappush(self._heap, (at_real_s, self._order, key))
        if len(self._heap) > SPARE + 2 * len(self.due_real_s):
            self._tidy()

    def _tidy(self) -> None:
        """Drop what something sooner has overtaken.

        A key that is worked on ten times a second and wants to come back in an hour would leave
        36,000 entries behind, each until its hour is over.
        """
        first: dict[Key, tuple[float, int, Key]] = {}
        for entry in sorted(self._heap):
            at_real_s, _, key = entry
            if self.due_real_s.get(key) == at_real_s and key not in self.running:
                first.setdefault(key, entry)
        self._heap = list(first.values())


class WorkQueue(Generic[Key]):
    """Runs ``work`` for due keys in ``workers`` tasks at most.

    ``work`` returns when it wants to see the key again (real monotonic seconds), or None. If it
    raises, the key backs off, and ``on_error`` is told when it comes back.
    """

    def __init__(
        self,
        work: Callable[[Key], Awaitable[float | None]],
        clock: ports.Clock,
        rng: random.Random,
        workers: int = 8,
        on_error: Callable[[Key, Exception, float], None] | None = None,
    ) -> None:
        self._work = work
        self._clock = clock
        self._workers = workers
        self._on_error = on_error
        self._changed = asyncio.Event()
        self.schedule: Schedule[Key] = Schedule(rng)

    def mark(self, key: Key, delay_real_s: float = 0.0) -> None:
        """The key may have changed."""
        self.schedule.mark(key, self._clock.real_s() + delay_real_s)
        self._changed.set()

    def forget(self, key: Key) -> None:
        """The key no longer exists; work under way ends by itself."""
        self.schedule.forget(key)

    @property
    def depth(self) -> int:
        """Keys that are due or being worked on."""
        now_real_s = self._clock.real_s()
        due = sum(1 for at_real_s in self.schedule.due_real_s.values() if at_real_s <= now_real_s)
        return due + len(self.schedule.running)

    async def run(self) -> None:
        """Work until cancelled; work under way is cancelled with it."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                free = self._workers - len(self.schedule.running)
                if free > 0 and (key := self.schedule.take(self._clock.real_s())) is not None:
                    group.create_task(self._handle(key))
                    continue
                await self._wait(free > 0)

    async def _wait(self, may_start: bool) -> None:
        """Until something is marked or done, or the next key falls due."""
        at_real_s = self.schedule.next_at_real_s() if may_start else None
        timeout_s = None if at_real_s is None else max(0.0, at_real_s - self._clock.real_s())
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _handle(self, key: Key) -> None:
        try:
            requeue_at_real_s = await self._work(key)
        except Exception as error:
            least_real_s = getattr(error, "retry_after_s", None) or 0.0
            at_real_s = self.schedule.failed(key, self._clock.real_s(), least_real_s)
            if self._on_error is not None:
                self._on_error(key, error, at_real_s)
            else:
                _log.exception("work on %s failed", key)
        else:
            self.schedule.done(key, requeue_at_real_s)
        finally:
            self._changed.set()
