"""A light HTTP/1.1 client for streamed answers: keep-alive connections, nothing parsed but ends."""

import asyncio
import time
from typing import cast

from servelab.trial import answer, framing
from servelab.trial.payload import Request

HEAD_END = b"\r\n\r\n"


class Broken(ConnectionError):
    """The connection ended before the answer did."""


class _Connection(asyncio.Protocol):
    """One connection; carries one request at a time."""

    def __init__(self) -> None:
        self.reused = False
        self.silent = True
        self._transport: asyncio.Transport | None = None
        self._incoming: answer.Incoming | None = None
        self._ended: asyncio.Future[None] | None = None
        self._head = b""
        self._body: framing.ChunkedBody | None = None
        self._left_bytes = 0
        self._closes = False

    @property
    def usable(self) -> bool:
        """Whether another request can be sent on it."""
        return self._transport is not None and not self._transport.is_closing()

    async def run(self, request: bytes, incoming: answer.Incoming) -> None:
        """Send and wait for the whole answer. Raises Broken."""
        assert self._transport is not None
        self._incoming, self._head, self._body = incoming, b"", None
        self.silent = True
        self._ended = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            await self._ended
        finally:
            self._incoming = self._ended = None
        self.reused = True
        if self._closes:
            self.close()

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(f"the connection ended early ({exc or 'closed by the other side'})")

    def data_received(self, data: bytes) -> None:
        self.silent = False
        if self._incoming is None:
            self.close()
            return
        try:
            if self._body is None:
                data = self._take_head(data)
            if self._body is not None:
                self._take_body(data, self._incoming)
        except (ValueError, IndexError) as error:
            self._fail(f"not HTTP: {error}")
            self.close()

    def _take_head(self, data: bytes) -> bytes:
        """Read status and framing; what follows the head, or nothing while it is not whole."""
        self._head += data
        end = self._head.find(HEAD_END)
        if end < 0:
            return b""
        first, *lines = self._head[:end].decode("latin-1").split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        assert self._incoming is not None
        self._incoming.status = int(first.split(" ", 2)[1])
        self._closes = headers.get("connection", "").lower() == "close"
        self._body = framing.ChunkedBody()
        self._left_bytes = -1
        if headers.get("transfer-encoding", "").lower() != "chunked":
            self._left_bytes = int(headers.get("content-length", "0"))
        return self._head[end + len(HEAD_END) :]

    def _take_body(self, data: bytes, incoming: answer.Incoming) -> None:
        assert self._body is not None
        if self._left_bytes >= 0:
            incoming.feed(data, time.monotonic())
            self._left_bytes -= len(data)
            ended = self._left_bytes <= 0
        else:
            if content := self._body.feed(data):
                incoming.feed(content, time.monotonic())
            ended = self._body.ended
        if ended and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, reason: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(Broken(reason))


class Client:
    """Sends requests to one address, as many at a time as are asked of it. Close it."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()

    async def send(self, request: Request) -> answer.Outcome:
        """Send one and wait for its end. Never raises for what a server does."""
        incoming = answer.Incoming()
        sent_real_s = time.monotonic()
        try:
            await self._run(request.content, incoming)
            problem = incoming.problem(request.answer_tokens)
        except OSError as error:
            problem = str(error) or type(error).__name__
        return answer.Outcome(
            request.at_s,
            sent_real_s,
            incoming.first_real_s,
            time.monotonic(),
            incoming.status,
            incoming.tokens,
            problem,
        )

    def close(self) -> None:
        """Hang up everywhere; the event loop closes the sockets in its next round."""
        for connection in self._all:
            connection.close()

    async def _run(self, content: bytes, incoming: answer.Incoming) -> None:
        while True:
            connection = await self._connection()
            try:
                await connection.run(content, incoming)
            except Broken:
                # An idle connection that the server closed just then never saw the request.
                if connection.reused and connection.silent:
                    continue
                raise
            finally:
                self._give_back(connection)
            return

    async def _connection(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            self._all.discard(connection)
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(_Connection, *self._address)
        self._all.add(made)
        return made

    def _give_back(self, connection: _Connection) -> None:
        if connection.usable:
            self._idle.append(connection)
        else:
            self._all.discard(connection)
