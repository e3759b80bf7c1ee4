"""Large requests, handled on a thread beside the loop, so that others are answered meanwhile.

Reading megabytes and cutting them into tokens takes up to some tenths of a second; the tokenizer
lets the loop run all the while, Python's JSON reader at least in between. What a handler does to
its exchange there is done in the loop, in the same order.
"""

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Protocol

from servelab.engine.exchange import Handler, Request, Response
from servelab.engine.httpd.answer import Answer


class Home(Protocol):
    """The server, called in its loop."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def digested(self, answer: Answer, error: Exception | None) -> None:
        """A handler has done its part, or raised."""

    def failed(self, answer: Answer, error: Exception) -> None:
        """An answer cannot be completed."""


@functools.cache
def _thread() -> futures.Executor:
    """One for all servers: more would only take time from the loop."""
    return futures.ThreadPoolExecutor(1, thread_name_prefix="large-requests")


class DistantExchange:
    """An exchange for a handler that runs on another thread than the loop."""

    def __init__(self, answer: Answer, home: Home) -> None:
        self._answer = answer
        self._home = home
        self._thread = threading.get_ident()

    @property
    def request(self) -> Request:
        """Without its body once the handler has read it."""
        return self._answer.request

    def respond(self, response: Response) -> None:
        self._do(self._answer.respond, response)

    def begin(self, response: Response) -> None:
        self._do(self._answer.begin, response)

    def write(self, data: bytes) -> None:
        self._do(self._answer.write, data)

    def end(self) -> None:
        self._do(self._answer.end)

    def fail(self, error: Exception) -> None:
        self._do(self._answer.fail, error)

    def on_gone(self, callback: Callable[[], None]) -> None:
        self._do(self._answer.on_gone, callback)

    def later(self, act: Callable[[], None]) -> None:
        self._do(act)

    def _do(self, act: Callable[..., None], *arguments: object) -> None:
        if threading.get_ident() == self._thread:
            act(*arguments)
        else:
            self._home.loop.call_soon_threadsafe(self._do_soon, act, *arguments)

    def _do_soon(self, act: Callable[..., None], *arguments: object) -> None:
        try:
            act(*arguments)
        except Exception as error:
            self._home.failed(self._answer, error)


def handle(answer: Answer, handler: Handler, home: Home) -> None:
    """Let the handler answer."""
    answer.digesting = True
    exchange = DistantExchange(answer, home)

    def run() -> None:
        found: Exception | None = None
        try:
            if answer.open:
                handler(exchange)
        except Exception as error:
            found = error
        home.loop.call_soon_threadsafe(home.digested, answer, found)

    _thread().submit(run)
