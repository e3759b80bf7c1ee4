"""A client in the server's own process, without sockets: bytes in, bytes out, in turns of the loop.

For tests: how bytes are cut, what is not read and when a side closes is exactly as said.
"""

import asyncio
import json
import re
from collections import deque
from collections.abc import Mapping, Sequence

from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.httpd.connection import Connection
from servelab.engine.httpd.limits import Limits
from servelab.engine.httpd.server import HttpServer

TIGHT = Limits(
    head_bytes=4096,
    headers=20,
    body_bytes=4000,
    bodies_bytes=5000,
    free_body_bytes=100,
    inline_body_bytes=3500,
    unread_bytes=5000,
    discarded_bytes=50_000,
)


class Pages:
    """A site of GET and POST handlers by path; what fails is answered with the error's name."""

    server = "uvicorn"
    vary = None

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def routes(self) -> Sequence[Route]:
        return [
            Route(method, path, handler, aside=method == "POST")
            for path, handler in self._handlers.items()
            for method in ("GET", "POST")
        ]

    def not_found(self, request: Request) -> Response:
        return Response(404, b"no such path")

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        return Response(405, b"", headers=(("Allow", allowed[0]),))

    def refused(self, request: Request, error: Exception) -> Response:
        return Response(500, type(error).__name__.encode())

    def unready(self, request: Request) -> Response:
        return Response(503, b"loading")


class Kept(Pages):
    """Handlers that answer at once, keep the exchange, or fail; counts who has gone."""

    def __init__(self) -> None:
        super().__init__(
            {
                "/whole": lambda exchange: exchange.respond(Response(body=b"{}")),
                "/echo": self._echo,
                "/held": self._hold,
                "/wrong": self._fail,
                "/torn": self._tear,
                "/large/{size}": self._large,
                "/bad-header": lambda x: x.respond(Response(headers=(("a", "b\r\nc: d"),))),
            }
        )
        self.exchanges: list[Exchange] = []
        self.requests: list[Request] = []
        self.gone = 0
        self.error: Exception = LookupError("nothing there")

    def _echo(self, exchange: Exchange) -> None:
        request = exchange.request
        told = [request.target, request.path, request.headers.get("a"), len(request.body)]
        exchange.respond(Response(body=json.dumps(told).encode()))
        self.requests.append(request)

    def _hold(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        exchange.on_gone(self._left)

    def _left(self) -> None:
        self.gone += 1

    def _fail(self, exchange: Exchange) -> None:
        raise self.error

    def _tear(self, exchange: Exchange) -> None:
        exchange.begin(Response(body=b"part"))
        raise LookupError("nothing more")

    def _large(self, exchange: Exchange) -> None:
        exchange.respond(Response(body=b"x" * int(exchange.request.parameters["size"])))


def kept(limits: Limits = TIGHT) -> tuple[Kept, HttpServer, "Client"]:
    """Such a site, its server in the year 1970, and a client."""
    site = Kept()
    server = HttpServer(site, now_unix_s=lambda: 0.0, limits=limits)
    return site, server, Client(server)


def post(path: str, body: bytes, *headers: str) -> bytes:
    """A request with a body."""
    lines = [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def turns(count: int = 5) -> None:
    """Let the loop run what is due."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


class _Transport(asyncio.Transport):
    """What a connection sees of its client."""

    def __init__(self, client: "Client") -> None:
        super().__init__({"peername": ("192.0.2.1", 40_000)})
        self._client = client
        self._high_bytes = 65_536
        self._write_paused = False
        self.buffered_bytes = 0

    def is_closing(self) -> bool:
        return self._client.closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is not None:
            self._high_bytes = high

    def get_write_buffer_size(self) -> int:
        return self.buffered_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._client.closing:
            return
        self._client.received += data
        if not self._client.reads:
            self.buffered_bytes += len(data)
            if self.buffered_bytes > self._high_bytes and not self._write_paused:
                self._write_paused = True
                self._client.connection.pause_writing()

    def drained(self) -> None:
        """The client has read everything."""
        self.buffered_bytes = 0
        if self._write_paused:
            self._write_paused = False
            self._client.connection.resume_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._client.ended = True

    def pause_reading(self) -> None:
        self._client.held = True

    def resume_reading(self) -> None:
        self._client.held = False
        self._client.soon()

    def close(self) -> None:
        self._client.close(aborted=False)

    def abort(self) -> None:
        self._client.close(aborted=True)


class Client:
    """One connection. ``reads`` off: what the server writes stays in its buffer.

    ``held`` is set while the server does not read; ``ended`` when it has closed its side;
    ``closing`` when the connection is over, and ``aborted`` if it was cut.
    """

    def __init__(self, server: HttpServer) -> None:
        self.received = bytearray()
        self.reads = True
        self.held = False
        self.ended = False
        self.closing = False
        self.aborted = False
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[bytes] = deque()
        self._transport = _Transport(self)
        self.connection = Connection(server)
        self.connection.connection_made(self._transport)

    def send(self, *parts: bytes) -> None:
        """Let the server receive these parts one by one, as far as it reads."""
        self._unsent.extend(parts)
        self._deliver()

    def end(self) -> None:
        """Close this side only, as a half-closed client; real loops close the other side too."""
        self.connection.eof_received()
        self.close(aborted=False)

    def close(self, *, aborted: bool) -> None:
        """Close both sides."""
        if self.closing:
            return
        self.closing, self.aborted = True, aborted
        self._loop.call_soon(self.connection.connection_lost, None)

    def read(self) -> None:
        """Take what is in the server's buffer."""
        self.reads = True
        self._transport.drained()

    @property
    def statuses(self) -> list[int]:
        """Of the answers so far."""
        return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.received)]

    def soon(self) -> None:
        """The server reads again."""
        self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        while self._unsent and not self.held and not self.closing:
            self.connection.data_received(self._unsent.popleft())
