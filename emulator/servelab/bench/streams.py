"""Many streams held open at once, each checked to its end."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from servelab.bench import wrk

CONNECTING = 100  # at a time
_EVENT = b"data: "
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Streams:
    """How many were open at the same time, and how many had all their tokens and the end."""

    most_open: int
    whole: int


class _Stream(asyncio.Protocol):
    """One request; counts events as they come and keeps no more than the last bytes."""

    def __init__(self, ask: bytes, run: "_Run") -> None:
        self._ask = ask
        self._run = run
        self._tail = b""
        self._events = 0
        self._open = False
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(self._ask)

    def data_received(self, data: bytes) -> None:
        if not self._open:
            self._open = True
            self._run.opened()
        text = self._tail + data
        self._events += text.count(_EVENT) - self._tail.count(_EVENT)
        self._tail = text[-len(_DONE) - 10 :]
        if _DONE in self._tail:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        # One event opens a chat answer, one more tells its end.
        self._run.closed(self._open, whole=self._events == self._run.tokens + 2)


class _Run:
    def __init__(self, count: int, tokens: int) -> None:
        self.tokens = tokens
        self.open = self.most_open = self.whole = 0
        self._left = count
        self.over = asyncio.Event()

    def opened(self) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)

    def closed(self, was_open: bool, *, whole: bool) -> None:
        self.open -= was_open
        self.whole += whole
        self._left -= 1
        if not self._left:
            self.over.set()


async def hold(port: int, count: int, tokens: int) -> Streams:
    """Open so many streams of so many tokens each; returns when all have ended."""
    body = json.dumps(wrk.chats(tokens, stream=True)[0]).encode()
    head = f"POST {wrk.PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    ask = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
    run = _Run(count, tokens)
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(CONNECTING)

    async def one() -> None:
        async with gate:
            try:
                await loop.create_connection(lambda: _Stream(ask, run), "127.0.0.1", port)
            except OSError:
                run.closed(False, whole=False)

    await asyncio.gather(*(one() for _ in range(count)))
    await run.over.wait()
    return Streams(run.most_open, run.whole)
