"""Drives a core in real time: wakes it when its next step ends and hands its outputs on."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from modelserve.errors import ModelServeError
from modelserve.ports import Clock
from servelab.engine.core.sequences import CoreRequest, Finish, FirstToken, Output
from servelab.engine.core.stepping import EngineCore


class Reply(Protocol):
    """The answer that sequences belong to."""

    def flush(self) -> None:
        """Send what came since the last flush."""
        ...


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
    """One engine's clockwork. Tokens due within ``coalesce_real_s`` go out together."""

    def __init__(
        self, core: EngineCore, clock: Clock, observer: Observer, coalesce_real_s: float = 0.002
    ) -> None:
        self._core = core
        self._clock = clock
        self._observer = observer
        self._coalesce_real_s = coalesce_real_s
        self._sinks: dict[str, Sink] = {}
        self._handle: asyncio.Handle | None = None
        self._soon = False
        self._not_before_real_s = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def open_requests(self) -> int:
        """Sequences that wait or run."""
        return len(self._sinks)

    def submit(self, requests: Sequence[tuple[CoreRequest, Sink]]) -> None:
        """Queue requests that came together, all or none; raises what the core raises."""
        now_s = self._clock.now_s()
        taken: list[str] = []
        try:
            for request, _ in requests:
                self._core.submit(request, now_s)
                taken.append(request.id)
        except ModelServeError:
            for request_id in taken:
                self._core.cancel(request_id, now_s)
            raise
        self._sinks.update((request.id, sink) for request, sink in requests)
        self._turn_soon()

    def cancel(self, request_id: str) -> None:
        """Drop a request; nothing more goes to its sink."""
        if self._sinks.pop(request_id, None) is not None:
            self._core.cancel(request_id, self._clock.now_s())
            self._turn_soon()

    def stop(self) -> None:
        """Never wake again."""
        self._sinks.clear()
        if self._handle is not None:
            self._handle.cancel()

    def settle(self) -> None:
        """Bring the core and the observer up to now."""
        self._deliver(self._core.advance(self._clock.now_s()))

    def _turn_soon(self) -> None:
        if self._soon:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._soon = True
        self._handle = self._loop.call_soon(self._turn, self._loop.time())

    def _turn(self, due_real_s: float) -> None:
        started_real_s = self._loop.time()
        self._soon, self._handle = False, None
        try:
            self.settle()
        finally:
            self._sleep(started_real_s, due_real_s)

    def _sleep(self, started_real_s: float, due_real_s: float) -> None:
        """Have the next turn when the core wants it, or a little later."""
        wake_s = self._core.next_wake()
        if wake_s is None:
            return
        ended_real_s = self._loop.time()
        # An engine that falls behind turns less often and sends more at once, so that it catches
        # up.
        late_real_s = started_real_s - due_real_s
        pause_real_s = max(
            self._coalesce_real_s, 2 * (ended_real_s - started_real_s), min(late_real_s, 0.1)
        )
        wake_real_s = ended_real_s + (wake_s - self._clock.now_s()) / self._clock.scale
        at_real_s = max(wake_real_s, started_real_s + pause_real_s)
        self._handle = self._loop.call_at(at_real_s, self._turn, at_real_s)

    def _deliver(self, outputs: Sequence[Output]) -> None:
        if not outputs:
            return
        self._observer.observe(outputs)
        touched: dict[int, Reply] = {}
        sinks = self._sinks
        for output in outputs:
            for first in output.firsts:
                sink = sinks.get(first.id)
                if sink is not None:
                    sink.first(first)
            count = len(output.times_s)
            for request_id in output.ids:
                sink = sinks.get(request_id)
                if sink is not None:
                    sink.tokens(count)
                    touched[id(sink.reply)] = sink.reply
            for finish in output.finished:
                sink = sinks.pop(finish.id, None)
                if sink is not None:
                    sink.finish(finish)
                    touched[id(sink.reply)] = sink.reply
        for reply in touched.values():
            reply.flush()
