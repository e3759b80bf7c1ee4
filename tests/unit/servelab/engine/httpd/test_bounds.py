"""What one client may take: heads, bodies, unread answers, time. Without sockets or a clock."""

from dataclasses import replace

import pytest

from servelab.engine.exchange import Response
from servelab.engine.httpd.limits import Limits
from servelab.engine.httpd.loopback import TIGHT, Client, kept, post, turns

GET = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"
HELD = b"GET /held HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.2\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(21)) + b"\r\n",
        b"GET / HTTP/1.1\r\na: " + b"b" * 5000,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nt: " + b"b" * 5000,
    ],
    ids=lambda each: each[:60].decode("latin-1"),
)
async def test_a_request_that_breaks_the_rules_or_bounds_gets_400(request_bytes: bytes) -> None:
    _, server, client = kept()
    client.send(*(request_bytes[n : n + 500] for n in range(0, len(request_bytes), 500)))
    assert client.statuses == [400]
    assert server.open_exchanges == 0


async def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    site, server, client = kept()
    client.send(post("/echo", b"")[:-4].replace(b": 0", b": 100000000") + b"\r\n\r\n")
    client.send(b"x" * 1000)
    assert (client.statuses, client.ended, client.aborted) == ([413], True, False)
    client.send(*[b"x" * 10_000] * 5)
    assert (client.aborted, site.requests) == (True, [])
    assert server.budget.room_bytes == TIGHT.bodies_bytes


async def test_a_chunked_body_beyond_the_limit_is_refused_when_it_is_reached() -> None:
    _, server, client = kept()
    client.send(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.send(*[b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * 4)
    assert client.statuses == []
    client.send(b"1\r\nx\r\n")
    assert client.statuses == [413]
    assert server.budget.room_bytes == TIGHT.bodies_bytes


async def test_bodies_wait_for_each_other_where_the_budget_ends_and_small_ones_pass() -> None:
    _, server, first = kept()
    second, third = Client(server), Client(server)
    request = post("/echo", b"x" * 3000)
    first.send(request[:200])
    second.send(request[:200], request[200:])
    third.send(post("/echo", b"small"))
    assert (first.held, second.held, third.statuses) == (False, True, [200])
    first.send(request[200:])
    await turns()
    assert (first.statuses, second.statuses) == ([200], [200])
    assert server.budget.room_bytes == TIGHT.bodies_bytes


async def test_a_client_that_goes_amid_its_body_makes_room() -> None:
    site, server, first = kept()
    second = Client(server)
    first.send(post("/echo", b"x" * 3000)[:200])
    second.send(post("/echo", b"x" * 3000)[:200])
    first.close(aborted=True)
    await turns()
    assert (site.requests, second.held) == ([], False)
    second.close(aborted=True)
    await turns()
    assert server.budget.room_bytes == TIGHT.bodies_bytes


async def test_bodies_that_wait_for_their_turn_give_their_room_back() -> None:
    site, server, client = kept()
    large = post("/echo", b"x" * 2000)
    client.send(HELD + large + large + large)
    site.exchanges[0].respond(Response())
    await turns()
    assert client.statuses == [200] * 4
    assert server.budget.room_bytes == TIGHT.bodies_bytes


async def test_who_waits_for_room_is_not_closed_with_those_who_stand_still_in_it() -> None:
    _, server, slow = kept()
    waiting = Client(server)
    slow.send(post("/echo", b"x" * 3000)[:200])
    waiting.send(post("/echo", b"x" * 3000)[:200])
    server.sweep(server.tick_s + server.limits.body_s + 1)
    await turns()
    assert (slow.aborted, waiting.closing, waiting.held) == (True, False, False)


async def test_a_large_body_is_dropped_once_the_handler_has_seen_it() -> None:
    site, _, client = kept(Limits())
    client.send(post("/held", b"x" * 50_000))
    assert site.exchanges[0].request.body == b""
    assert site.exchanges[0].request.path == "/held"


async def test_a_client_that_never_reads_is_cut_off_and_others_go_on() -> None:
    site, server, client = kept()
    other = Client(server)
    client.reads = False
    client.send(HELD)
    site.exchanges[0].begin(Response())
    for _ in range(6):
        site.exchanges[0].write(b"x" * 1000)
    await turns()
    assert (client.aborted, site.gone, server.open_exchanges) == (True, 1, 0)
    other.send(GET)
    assert other.statuses == [200]


async def test_where_all_hold_too_much_unread_the_slowest_are_cut_off() -> None:
    site, server, first = kept(replace(TIGHT, all_unread_bytes=6000))
    clients = [first, Client(server), Client(server)]
    for client, n_bytes in zip(clients, (1500, 3000, 2500), strict=True):
        client.reads = False
        client.send(HELD)
        site.exchanges[-1].begin(Response(body=b"x" * n_bytes))
    server.sweep(server.tick_s)
    await turns()
    assert [client.aborted for client in clients] == [False, True, False]
    assert (site.gone, server.open_exchanges) == (1, 2)


async def test_a_long_whole_answer_is_no_reason_to_cut_but_the_next_waits_for_it() -> None:
    _, _, client = kept()
    client.reads = False
    client.send(b"GET /large/9000 HTTP/1.1\r\n\r\n" + GET)
    assert (client.statuses, client.aborted) == ([200], False)
    client.read()
    await turns()
    assert client.statuses == [200, 200]


@pytest.mark.parametrize(
    ("sent", "limit_s"),
    [
        (b"", 60),
        (b"GET / HTTP/1.1\r\nslow", 60),
        (post("/echo", b"abc")[:-1], 60),
        (GET, 5),
        (b"\0", 10),
    ],
    ids=["silent", "half a head", "half a body", "idle after an answer", "refused"],
)
async def test_a_connection_that_stands_still_is_closed(sent: bytes, limit_s: float) -> None:
    _, server, client = kept()
    client.send(sent)
    client.connection.sweep(server.tick_s + limit_s)
    assert not client.closing
    client.connection.sweep(server.tick_s + limit_s + 0.1)
    assert client.closing


async def test_an_answer_under_way_is_waited_for_however_long() -> None:
    _, server, client = kept()
    client.send(HELD)
    client.connection.sweep(server.tick_s + 1e6)
    assert not client.closing


async def test_an_answer_that_nobody_reads_is_dropped_in_the_end_but_not_while_it_flows() -> None:
    _, server, client = kept()
    client.reads = False
    client.send(GET)
    for waited_s in (30, 89):
        client.connection.sweep(server.tick_s + waited_s)
    assert not client.closing
    client.connection.sweep(server.tick_s + 91)
    assert client.aborted
