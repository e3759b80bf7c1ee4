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


async def visits(port: int, tokens: int, duration_s: float) -> int:
    """One client after the other for so long: by turns for a short answer and for a stream that it
    leaves at its first bytes. How many came.
    """
    loop = asyncio.get_running_loop()
    asks = [request(tokens, stream=stream) for stream in (False, True)]
    began_s, count = loop.time(), 0
    while loop.time() - began_s < duration_s:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asks[count % 2])
        await reader.read(1)
        # What is unread when it closes makes it an abort.
        writer.transport.abort()
        count += 1
    return count


def request(tokens: int, *, stream: bool) -> bytes:
    """A chat request for so many tokens, as it goes over the wire."""
    return post(wrk.PATH, json.dumps(wrk.chats([tokens], stream=stream, prompts=1)[0]).encode())


def post(path: str, body: bytes) -> bytes:
    """A request with JSON."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def hold(port: int, count: int, tokens: int) -> Streams:
    """Open so many streams of so many tokens each; returns when all have ended."""
    ask = request(tokens, stream=True)
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
