"""Drives a core in real time: wakes it when its next step ends and hands its outputs on."""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from modelserve.errors import ModelServeError
from modelserve.ports import Clock
from servelab.engine import alarms
from servelab.engine.core.sequences import CoreRequest, Finish, FirstToken, Output
from servelab.engine.core.stepping import EngineCore

LOGGER = logging.getLogger(__name__)
# A turn is not set anew for the sake of less; timers of whole milliseconds may be as early.
SLACK_REAL_S = 0.001
# Less than this is no delay.
LEAST_REAL_S = 1e-6
# So late a turn does not wait for the loop, which may have many requests to read before.
OVERDUE_REAL_S = 0.001


class Reply(Protocol):
    """The answer that sequences belong to."""

    @property
    def streams(self) -> bool:
        """Whether tokens are sent as they come, and not all at the end."""
        ...

    def flush(self) -> None:
        """Send what came since the last flush."""

    def fail(self, error: Exception) -> None:
        """It cannot be completed, for a fault of our own."""


class Sink(Protocol):
    """Takes the tokens of one sequence."""

    @property
    def reply(self) -> Reply: ...

    def first(self, first: FirstToken) -> None: ...

    def tokens(self, count: int) -> None: ...

    def finish(self, finish: Finish) -> None: ...


class Observer(Protocol):
    """Sees every output before it is sent."""

    def observe(self, outputs: Sequence[Output]) -> None: ...


class Driver:
    """One engine's clockwork, with one timer. Tokens due within ``coalesce_real_s`` go together.

    ``on_sent`` gets outputs once they are handed on, and ``on_flushed`` is called after each answer
    that got tokens of them: with uvloop the bytes are in the kernel by then.
    """

    def __init__(
        self,
        core: EngineCore,
        clock: Clock,
        observer: Observer,
        coalesce_real_s: float = 0.0005,
        timers: alarms.Timers | None = None,
    ) -> None:
        self.on_flushed: Callable[[], None] | None = None
        self.on_sent: Callable[[Sequence[Output]], None] | None = None
        self._core = core
        self._clock = clock
        self._observer = observer
        self._coalesce_real_s = coalesce_real_s
        self._timers = timers or alarms.of(asyncio.get_running_loop())
        self._sinks: dict[str, Sink] = {}
        self._handle: alarms.Handle | None = None
        self._wake_s = 0.0  # what the core wanted when the next turn was set
        self._due_real_s = 0.0  # when it is
        self._not_before_real_s = 0.0  # the earliest it may be
        self._rested_real_s = 0.0  # as long after the last turn as it took

    @property
    def open_requests(self) -> int:
        """Sequences that wait or run."""
        return len(self._sinks)

    def submit(self, requests: Sequence[tuple[CoreRequest, Sink]]) -> None:
        """Queue requests that came together, all or none; raises what the core raises."""
        core, now_s = self._core, self._clock.now_s()
        taken = 0
        try:
            for request, _ in requests:
                core.submit(request, now_s)
                taken += 1
        except ModelServeError:
            for request, _ in requests[:taken]:
                core.cancel(request.id, now_s)
            raise
        finally:
            self._arm()
        for request, sink in requests:
            self._sinks[request.id] = sink
        self._hurry()

    def cancel(self, request_id: str) -> None:
        """Drop a request; nothing more goes to its sink."""
        if self._sinks.pop(request_id, None) is not None:
            self._core.cancel(request_id, self._clock.now_s())
            self._arm()

    @property
    def sinks(self) -> Sequence[Sink]:
        """Of all sequences that wait or run."""
        return list(self._sinks.values())

    def abort(self, sinks: Collection[Sink]) -> None:
        """End the sequences of these sinks, which are told of it."""
        now_s, wanted = self._clock.now_s(), set(sinks)
        for request_id in [each for each, sink in self._sinks.items() if sink in wanted]:
            self._core.cancel(request_id, now_s)
        self.settle()

    def hold(self, *, requeue: bool) -> None:
        """Compute nothing until ``release``; ``requeue``: all that run queue up again."""
        self._core.hold(self._clock.now_s(), requeue=requeue)
        self.settle()

    def release(self) -> None:
        """Go on after ``hold``."""
        self._core.release(self._clock.now_s())
        self.settle()

    def forget(self) -> bool:
        """Empty the prefix cache, if nothing runs or waits; whether it was done."""
        done = self._core.forget(self._clock.now_s())
        self.settle()
        return done

    def stop(self) -> None:
        """Drop all requests and do nothing until the next."""
        self._sinks.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._timers.close()

    def settle(self) -> None:
        """Bring the core and the observer up to now."""
        self._deliver(self._core.advance(self._clock.now_s()))
        self._arm()

    def _arm(self) -> None:
        """See that there is a turn when the core wants one, but not before it may be."""
        wake_s = self._core.next_wake()
        if wake_s is None or (self._handle is not None and wake_s >= self._wake_s):
            return
        clock = self._clock
        now_real_s = clock.real_s()
        wake_real_s = now_real_s + (wake_s - clock.now_s()) / clock.scale
        due_real_s = max(wake_real_s, self._not_before_real_s)
        if self._handle is not None:
            if due_real_s > self._due_real_s - SLACK_REAL_S:
                return
            self._handle.cancel()
        self._wake_s, self._due_real_s = wake_s, due_real_s
        timers, delay_s = self._timers, due_real_s - now_real_s
        if timers.tick_s:
            delay_s = math.ceil((delay_s - LEAST_REAL_S) / timers.tick_s) * timers.tick_s
        if delay_s < LEAST_REAL_S:
            self._handle = timers.call_soon(self._turn)
        else:
            self._handle = timers.call_later(delay_s, self._turn)

    def _hurry(self) -> None:
        """Have the turn now that the loop is late with. Half of the time is left for requests."""
        now_real_s = self._clock.real_s()
        overdue = now_real_s > self._due_real_s + OVERDUE_REAL_S
        if overdue and now_real_s > self._rested_real_s and self._handle is not None:
            self._handle.cancel()
            self._turn()

    def _turn(self) -> None:
        self._handle = None
        started_real_s = self._clock.real_s()
        try:
            if started_real_s >= self._due_real_s - LEAST_REAL_S:
                # An engine that falls behind brings more steps at once, which costs less.
                self._not_before_real_s = started_real_s + self._coalesce_real_s
                self._deliver(self._core.advance(self._clock.now_s()))
                ended_real_s = self._clock.real_s()
                self._rested_real_s = ended_real_s + (ended_real_s - started_real_s)
        finally:
            self._arm()

    def _deliver(self, outputs: Sequence[Output]) -> None:
        if not outputs:
            return
        self._observer.observe(outputs)
        touched: dict[Reply, None] = {}
        for output in outputs:
            self._hand_on(output, touched)
        self._flush(touched)
        if self.on_sent is not None:
            self.on_sent(outputs)

    def _hand_on(self, output: Output, touched: dict[Reply, None]) -> None:
        """Give each sink what is its own, and note whose reply has something to send."""
        sinks = self._sinks
        for first in output.firsts:
            if (sink := sinks.get(first.id)) is not None:
                sink.first(first)
        count = len(output.times_s)
        for request_id in output.ids:
            if (sink := sinks.get(request_id)) is not None:
                sink.tokens(count)
                if (reply := sink.reply).streams:
                    touched[reply] = None
        for finish in output.finished:
            if (sink := sinks.pop(finish.id, None)) is not None:
                sink.finish(finish)
                touched[sink.reply] = None

    def _flush(self, replies: Iterable[Reply]) -> None:
        on_flushed = self.on_flushed
        for reply in replies:
            try:
                reply.flush()
                if on_flushed is not None:
                    on_flushed()
            except Exception as error:
                # One answer's fault must not take the others along.
                LOGGER.exception("an answer could not be sent")
                self._fail(reply, error)

    def _fail(self, reply: Reply, error: Exception) -> None:
        for request_id in [each for each, sink in self._sinks.items() if sink.reply is reply]:
            del self._sinks[request_id]
            self._core.cancel(request_id, self._clock.now_s())
        reply.fail(error)
