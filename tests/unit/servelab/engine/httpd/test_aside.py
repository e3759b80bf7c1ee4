"""Large requests are read on a thread, and nobody waits for them but their clients."""

import asyncio
import threading

import pytest

from modelserve.errors import InputError
from servelab.engine.exchange import Exchange, Response
from servelab.engine.httpd.limits import Limits
from servelab.engine.httpd.loopback import TIGHT, Client, Pages, kept, post, turns
from servelab.engine.httpd.server import HttpServer

SMALL, LARGE = b"x" * 3000, b"x" * 4000
GET = b"GET /read HTTP/1.1\r\n\r\n"


class Reading(Pages):
    """Reads a POST while ``gate`` is closed, and tells on which thread."""

    def __init__(self) -> None:
        super().__init__({"/read": self._read, "/wrong": self._fail})
        self.gate, self.began = threading.Event(), asyncio.Event()
        self.threads: list[int] = []
        self.exchanges: list[Exchange] = []
        self._loop = asyncio.get_running_loop()

    def _read(self, exchange: Exchange) -> None:
        self.threads.append(threading.get_ident())
        self.exchanges.append(exchange)
        if len(exchange.request.body) == len(LARGE):
            self._loop.call_soon_threadsafe(self.began.set)
            self.gate.wait()
        exchange.begin(Response(body=b"a"))
        exchange.write(b"b")
        exchange.end()

    def _fail(self, exchange: Exchange) -> None:
        raise InputError("so not")


async def until_answered(client: Client, count: int = 1) -> None:
    while len(client.statuses) < count:
        await turns(1)


async def test_others_are_answered_while_a_large_request_is_read() -> None:
    site = Reading()
    server = HttpServer(site, limits=TIGHT)
    client, other = Client(server), Client(server)
    client.send(post("/read", LARGE))
    await site.began.wait()
    other.send(GET, post("/read", SMALL))
    assert (client.statuses, other.statuses) == ([], [200, 200])
    site.gate.set()
    await until_answered(client)
    await turns()
    assert client.received.endswith(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
    assert [thread == threading.get_ident() for thread in site.threads] == [False, True, True]


async def test_the_room_for_a_body_is_given_back_once_it_is_read() -> None:
    site = Reading()
    server = HttpServer(site, limits=TIGHT)
    client = Client(server)
    client.send(post("/read", LARGE))
    await site.began.wait()
    client.close(aborted=True)
    await turns()
    assert server.budget.room_bytes == TIGHT.bodies_bytes - len(LARGE), "the thread still has it"
    site.gate.set()
    while server.budget.room_bytes < TIGHT.bodies_bytes:
        await turns(1)
    assert server.open_exchanges == 0


async def test_a_stream_does_not_keep_a_large_request() -> None:
    site, _, client = kept(Limits())
    client.send(post("/held", b"x" * 100_000))
    while not site.exchanges or site.exchanges[0].request.body:
        await turns(1)
    assert site.exchanges[0].request.path == "/held"


async def test_requests_behind_a_large_one_keep_their_turn() -> None:
    site = Reading()
    site.gate.set()
    client = Client(HttpServer(site, limits=TIGHT))
    client.send(post("/read", LARGE) + GET + post("/wrong", LARGE) + GET)
    await until_answered(client, 4)
    assert client.statuses == [200, 200, 500, 200]


@pytest.mark.parametrize("path", ["/wrong", "/bad-header"])
async def test_what_fails_aside_is_refused_as_anything(path: str) -> None:
    _, server, client = kept()
    client.send(post(path, LARGE))
    await until_answered(client)
    assert (client.statuses, server.open_exchanges) == ([500], 0)
    assert server.budget.room_bytes == TIGHT.bodies_bytes


async def test_who_has_gone_before_his_turn_is_not_read_for() -> None:
    site = Reading()
    server = HttpServer(site, limits=TIGHT)
    first, second = Client(server), Client(HttpServer(site, limits=TIGHT))
    first.send(post("/read", LARGE))
    await site.began.wait()
    second.send(post("/read", LARGE))
    second.close(aborted=True)
    await turns()
    site.gate.set()
    await until_answered(first)
    assert len(site.threads) == 1
