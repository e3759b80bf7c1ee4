"""The server over real sockets, on uvloop and on asyncio's own loop."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from servelab.engine import addresses
from servelab.engine.exchange import Exchange, Response
from servelab.engine.httpd.limits import Limits
from servelab.engine.httpd.loopback import Pages
from servelab.engine.httpd.server import HttpServer

GET = b"GET /whole HTTP/1.1\r\n\r\n"
HELD = b"GET /held HTTP/1.1\r\n\r\n"


class Running:
    """A server on a port of its own. ``held`` are the exchanges that wait for an answer."""

    def __init__(self) -> None:
        self.held: asyncio.Queue[Exchange] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.server = HttpServer(
            Pages(
                {
                    "/whole": lambda exchange: exchange.respond(Response(body=b"{}")),
                    "/held": self._hold,
                }
            ),
            limits=Limits(unread_bytes=100_000, body_bytes=1_000_000),
        )
        self.port = 0

    async def start(self) -> None:
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        await self.server.start(sock)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    def _hold(self, exchange: Exchange) -> None:
        exchange.on_gone(self.gone.set)
        self.held.put_nowait(exchange)


Play = Callable[[Running], Awaitable[None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Callable[[Play], None]:
    """Runs a play on a fresh loop, with a running server."""

    async def whole(act: Play) -> None:
        running = Running()
        await running.start()
        try:
            await act(running)
        finally:
            await running.server.abort()

    def run(act: Play) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(whole(act))

    return run


def test_a_connection_is_kept_and_its_requests_are_answered(play: Callable[[Play], None]) -> None:
    async def act(running: Running) -> None:
        reader, writer = await running.connect()
        for _ in range(3):
            writer.write(GET)
            head = await reader.readuntil(b"\r\n\r\n")
            assert (head.split(b" ")[1], await reader.readexactly(2)) == (b"200", b"{}")
        writer.close()

    play(act)


def test_a_client_that_half_closes_is_gone_and_one_that_was_answered_is_not(
    play: Callable[[Play], None],
) -> None:
    async def act(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(GET + HELD)
        writer.write_eof()
        assert (await reader.read()).count(b"200 OK") == 1
        await running.gone.wait()
        assert running.server.open_exchanges == 0
        writer.close()

    play(act)


def test_a_client_that_never_reads_is_cut_off(play: Callable[[Play], None]) -> None:
    async def act(running: Running) -> None:
        _, writer = await running.connect()
        writer.write(HELD)
        exchange = await running.held.get()
        exchange.begin(Response())
        # The kernel's own buffers come first.
        for _ in range(2000):
            exchange.write(b"x" * 10_000)
        await running.gone.wait()
        assert running.server.open_exchanges == 0
        writer.close()

    play(act)


def test_a_body_of_100_mb_is_refused_and_the_client_reads_why(play: Callable[[Play], None]) -> None:
    async def act(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"POST /held HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(100):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
        assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
        assert running.server.budget.room_bytes == running.server.limits.bodies_bytes
        writer.close()

    play(act)


def test_after_its_drain_nobody_can_connect_and_what_ran_is_answered(
    play: Callable[[Play], None],
) -> None:
    async def act(running: Running) -> None:
        reader, writer = await running.connect()
        idle, other = await running.connect()
        writer.write(HELD)
        exchange = await running.held.get()
        running.server.stop_listening()
        assert await idle.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await running.connect()
        exchange.respond(Response(body=b"last"))
        assert (await reader.read()).endswith(b"last")
        await running.server.quiet()
        writer.close()
        other.close()

    play(act)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_who_listens_second_on_an_address_is_told(run: Callable[..., None]) -> None:
    """Both may be bound before the first one listens."""

    async def whole(first: socket.socket, second: socket.socket) -> None:
        first.listen()
        with pytest.raises(OSError, match="in use"):
            await Running().server.start(second)

    first = addresses.bound("127.0.0.1", 0, "")
    second = addresses.bound("127.0.0.1", first.getsockname()[1], "")
    with first, second:
        run(whole(first, second))
