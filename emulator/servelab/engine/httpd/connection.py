"""One client's connection: requests in, answers out in their order, bounds kept."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

from servelab.engine.exchange import Request, Response
from servelab.engine.httpd.answer import Answer
from servelab.engine.httpd.gate import Gate, Hold
from servelab.engine.httpd.heads import CONTINUE, INVALID, TOO_LARGE, Heads
from servelab.engine.httpd.limits import BodyBudget, Limits
from servelab.engine.httpd.parsing import BadRequest, RequestParser

OnAccess = Callable[[str, str, str, int], None]


class Home(Protocol):
    """The server that a connection belongs to."""

    limits: Limits
    heads: Heads
    budget: BodyBudget
    loop: asyncio.AbstractEventLoop
    on_access: OnAccess | None
    tick_s: float  # the loop's time at the last sweep

    def joined(self, connection: "Connection") -> None: ...
    def left(self, connection: "Connection") -> None: ...
    def handle(self, answer: Answer) -> None:
        """Route a request; never raises."""

    def refuse(self, answer: Answer, error: Exception) -> None:
        """Answer where a handler failed; never raises."""

    def done(self) -> None:
        """A request that was handed over is answered or cut."""


class Connection(asyncio.Protocol):
    """A protocol without timers: the server sweeps over all of them."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.heads = home.heads
        self.retiring = False
        self._client = "-"
        self._queue: deque[tuple[Request, bool, bool]] = deque()
        self._current: Answer | None = None
        self._refusal: Response | None = None  # sent once all before it is answered
        self._progress_bytes = 0
        self._continue_due = False
        self._pumping = False
        self._write_paused = False
        self._closing = False
        self._discarded_bytes = 0
        self._unread_bytes = 0
        self._served = False
        self._transport: asyncio.Transport
        self._gate: Gate
        self._parser: RequestParser

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._home.limits.unread_bytes)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._client = f"{peer[0]}:{peer[1]}"
        self._gate = Gate(self._transport, self._home.budget)
        self._parser = RequestParser(self, self._client, self._home.limits)
        self._home.joined(self)
        self._since_s = self._home.tick_s

    def data_received(self, data: bytes) -> None:
        if self._closing:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > self._home.limits.discarded_bytes:
                self.cut()
            return
        try:
            self._parser.feed(data)
        except BadRequest:
            self._refuse(INVALID)

    def eof_received(self) -> None:
        # As uvicorn, whose transport closes then: a client that has closed its side has gone.
        self._drop()

    def connection_lost(self, error: Exception | None) -> None:
        self._drop()
        self._parser.close()
        self._home.left(self)

    def pause_writing(self) -> None:
        if self._current is not None and self._current.begun:
            self.cut()
        else:
            # An answer sent whole may be longer than the bound: the next waits until it is out.
            self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._since_s = self._home.tick_s
        self._pump()

    # What the parser calls.

    def head_came(self, length_bytes: int | None, expects: bool) -> None:
        limits = self._home.limits
        self._since_s = self._home.tick_s
        self._progress_bytes = 0
        if length_bytes is not None:
            if length_bytes > limits.body_bytes:
                self._refuse(TOO_LARGE)
                return
            if length_bytes > limits.free_body_bytes:
                self._gate.reserve(self, length_bytes)
        self._continue_due = expects
        if expects and self._idle:
            self._send_continue()

    def body_came(self, total_bytes: int) -> None:
        limits = self._home.limits
        if total_bytes - self._progress_bytes >= limits.progress_bytes:
            self._progress_bytes = total_bytes
            self._since_s = self._home.tick_s
        if total_bytes > limits.body_bytes:
            self._refuse(TOO_LARGE)
        elif total_bytes > limits.free_body_bytes and not self._gate.asked:
            self._gate.reserve(self, limits.body_bytes)

    def request_came(self, request: Request, keeps_alive: bool, chunkable: bool) -> None:
        self._continue_due = False
        if self._gate.waits_bytes:
            self._gate.withdraw(self)
        if self._idle:
            self._start(request, keeps_alive, chunkable)
        elif not self._closing:
            self._queue.append((request, keeps_alive, chunkable))
            self._gate.hold(Hold.PIPELINE)

    # What an answer calls.

    def send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def told(self, request: Request, status: int) -> None:
        on_access = self._home.on_access
        if on_access is not None:
            on_access(request.client, request.method, request.target, status)

    def answered(self, *, closes: bool) -> None:
        if self._current is None:
            return
        self._current = None
        self._served = True
        self._since_s = self._home.tick_s
        self._home.done()
        if closes:
            self._finish()
        elif not self._pumping and (
            self._gate.shut or self._queue or self._refusal or self._continue_due
        ):
            # Not from within: whoever answered has other answers to give in this turn.
            self._home.loop.call_soon(self._pump)

    def refuse(self, answer: Answer, error: Exception) -> None:
        self._home.refuse(answer, error)

    def later(self, callback: Callable[[], None]) -> None:
        self._home.loop.call_soon(callback)

    # What the server calls.

    def retire(self) -> None:
        """Close after what is under way; at once if nothing is."""
        self.retiring = True
        if self._current is None and not self._queue:
            self._finish()

    def cut(self) -> None:
        """Close now; whoever answers is told that the client has gone."""
        self._drop()
        self._transport.abort()

    def room_given(self) -> None:
        """The budget has room for the body that waits."""
        self._since_s = self._home.tick_s
        self._gate.room_given()

    def sweep(self, now_s: float) -> int:
        """Close what has been idle, or without progress, for too long; what is unread, in bytes."""
        waited_s = now_s - self._since_s
        unread_bytes = self._transport.get_write_buffer_size()
        if self._current is not None:
            return unread_bytes
        if unread_bytes and unread_bytes != self._unread_bytes:
            self._unread_bytes, self._since_s = unread_bytes, now_s
        elif waited_s > self._patience_s(unread_bytes):
            if unread_bytes or self._closing or self._parser.in_body or self._parser.in_head:
                self.cut()
            else:
                self._finish()
        return unread_bytes

    def _patience_s(self, unread_bytes: int) -> float:
        """How long it may stand still as it is."""
        limits = self._home.limits
        if unread_bytes:
            return limits.flush_s
        if self._closing:
            return limits.discard_s
        if self._gate.waits_bytes:
            return 2 * limits.body_s  # those that have the room must end by then, or come on
        if self._parser.in_body:
            return limits.body_s
        if self._parser.in_head or not self._served:
            return limits.head_s
        return limits.keep_alive_s

    # Inside.

    @property
    def _idle(self) -> bool:
        """Whether the next request can be handed over at once."""
        return (
            self._current is None
            and not self._queue
            and not self._write_paused
            and not self._closing
        )

    def _start(self, request: Request, keeps_alive: bool, chunkable: bool) -> None:
        answer = self._current = Answer(self, request, keeps_alive, chunkable)
        self._home.handle(answer)
        if answer.digesting:
            answer.reserved_bytes = self._gate.hand_over()
            return
        if self._gate.reserved_bytes:
            self._gate.release(self)
        if answer.open:
            answer.forget_body()

    def _pump(self) -> None:
        """Hand over what waits, as far as it can be."""
        if self._pumping:
            return
        self._pumping = True
        while self._queue and self._current is None and not (self._write_paused or self._closing):
            self._start(*self._queue.popleft())
        self._pumping = False
        if not self._idle:
            return
        if self._refusal is not None:
            self._refuse(self._refusal)
            return
        if self._continue_due:
            self._send_continue()
        self._gate.lift(Hold.PIPELINE)

    def _send_continue(self) -> None:
        self._continue_due = False
        self.send(CONTINUE)

    def _refuse(self, response: Response) -> None:
        """Answer by ourselves after all before it, and close; what still comes is dropped."""
        self._parser.end()
        self._gate.release(self)
        if not self._idle:
            self._refusal = None if self._closing else response
            return
        self.send(self.heads.refusal(response))
        self._closing = True
        self._since_s = self._home.tick_s
        # Closed at once, the client might be reset before it reads the answer.
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()

    def _finish(self) -> None:
        """Close when all is flushed."""
        self._drop()
        self._since_s = self._home.tick_s
        self._transport.close()

    def _drop(self) -> None:
        """Nothing more is read or answered."""
        self._closing = True
        self._queue.clear()
        self._parser.end()
        self._gate.release(self)
        answer, self._current = self._current, None
        if answer is not None:
            answer.cut()
            self._home.done()
