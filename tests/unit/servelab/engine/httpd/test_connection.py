"""Requests in and answers out over one connection, without sockets and without a clock."""

import logging

import pytest

from modelserve.errors import InputError
from servelab.engine.exchange import Response, WantedFault
from servelab.engine.httpd.loopback import Client, Kept, kept, post, turns
from servelab.engine.httpd.server import HttpServer

GET = b"GET /whole HTTP/1.1\r\nHost: x\r\n\r\n"
HELD = b"GET /held HTTP/1.1\r\n\r\n"


async def test_an_answer_is_spelled_as_uvicorn_spells_it() -> None:
    _, _, client = kept()
    client.send(GET)
    assert bytes(client.received) == (
        b"HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: uvicorn\r\n"
        b"content-length: 2\r\ncontent-type: application/json\r\n\r\n{}"
    )


async def test_what_is_no_http_is_refused_as_uvicorn_refuses_it() -> None:
    _, _, client = kept()
    client.send(b"\x16\x03\x01 garbage\r\n\r\n")
    assert bytes(client.received) == (
        b"HTTP/1.1 400 Bad Request\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: uvicorn\r\n"
        b"content-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\nconnection: close\r\n"
        b"\r\nInvalid HTTP request received."
    )
    assert client.ended


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/echo?a=b", "/echo"),
        ("/%65cho", "/echo"),
        ("http://other/echo", "/echo"),
        ("/echo#part", "/echo"),
    ],
)
async def test_a_target_is_kept_and_its_path_decoded(target: str, path: str) -> None:
    site, _, client = kept()
    client.send(f"GET {target} HTTP/1.1\r\n\r\n".encode())
    assert (site.requests[0].target, site.requests[0].path) == (target, path)


async def test_of_a_repeated_header_the_first_counts_and_names_are_lower_case() -> None:
    site, _, client = kept()
    client.send(post("/echo", b"", "A: \xe9", "a: 2"))
    assert site.requests[0].headers == {"content-length": "0", "a": "\xc3\xa9"}


async def test_requests_are_answered_in_their_order_however_they_come() -> None:
    site, _, client = kept()
    client.send(HELD + GET + post("/echo", b"abc"))
    assert (client.statuses, client.held) == ([], True)
    site.exchanges[0].respond(Response(body=b"first"))
    await turns()
    assert client.statuses == [200, 200, 200]
    assert client.received.endswith(b'["/echo", "/echo", null, 3]')
    assert not client.held


async def test_after_a_pipeline_is_worked_off_the_connection_is_read_again() -> None:
    site, _, client = kept()
    client.send(HELD + HELD, GET)
    for exchange in range(2):
        site.exchanges[exchange].respond(Response())
        await turns()
    assert (client.statuses, client.held) == ([200, 200, 200], False)


async def test_what_came_before_a_bad_request_is_answered_first() -> None:
    site, _, client = kept()
    client.send(HELD + GET + b"\0\r\n\r\n")
    site.exchanges[0].respond(Response())
    await turns()
    assert client.statuses == [200, 200, 400]


async def test_an_old_client_gets_a_stream_up_to_the_end_of_the_connection() -> None:
    site, _, client = kept()
    client.send(b"GET /held HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    exchange = site.exchanges[0]
    exchange.begin(Response(content_type="text/event-stream", body=b"a"))
    exchange.write(b"b")
    exchange.end()
    head, _, body = bytes(client.received).partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"chunked" not in head
    assert (body, client.closing, client.aborted) == (b"ab", True, False)


async def test_a_stream_is_chunked_and_the_connection_stays() -> None:
    site, _, client = kept()
    client.send(HELD)
    exchange = site.exchanges[0]
    exchange.begin(Response(content_type="text/event-stream"))
    exchange.write(b"data: 1\n\n")
    exchange.end()
    exchange.write(b"never")
    assert bytes(client.received).partition(b"\r\n\r\n")[2] == b"9\r\ndata: 1\n\n\r\n0\r\n\r\n"
    assert not client.closing


async def test_an_answer_to_head_has_the_length_and_no_body() -> None:
    _, _, client = kept()
    client.send(b"HEAD /nowhere HTTP/1.1\r\n\r\n" + GET)
    head, _, rest = bytes(client.received).partition(b"\r\n\r\n")
    assert b"content-length: 12" in head
    assert rest.startswith(b"HTTP/1.1 200 OK")


async def test_a_client_that_asks_is_told_to_go_on() -> None:
    _, _, client = kept()
    client.send(post("/echo", b"", "Expect: 100-continue").replace(b": 0", b": 3"))
    assert bytes(client.received) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"abc")
    assert client.statuses == [100, 200]


async def test_a_pipelined_client_that_asks_is_told_when_its_turn_comes() -> None:
    site, _, client = kept()
    client.send(HELD + post("/echo", b"", "Expect: 100-continue").replace(b": 0", b": 3"))
    assert client.statuses == []
    site.exchanges[0].respond(Response())
    await turns()
    assert client.statuses == [200, 100]


async def test_chunks_and_trailers_are_read_as_one_body() -> None:
    _, _, client = kept()
    head = b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\na: b\r\n\r\n"
    client.send(head + b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\na: trailer\r\nb: c\r\n\r\n" + GET)
    assert b'["/echo", "/echo", "b", 5]' in client.received
    assert client.statuses == [200, 200]


async def test_another_protocol_is_not_taken_up() -> None:
    _, _, client = kept()
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    client.send(b"GET /whole HTTP/1.1\r\n" + upgrade + GET)
    assert client.statuses == [200, 200]


async def test_a_half_closed_client_has_gone() -> None:
    site, server, client = kept()
    client.send(HELD + GET)
    client.end()
    await turns()
    assert (site.gone, server.open_exchanges, server.connections) == (1, 0, 0)
    assert client.statuses == []


async def test_who_asks_late_is_told_too_that_the_client_has_gone() -> None:
    site, _, client = kept()
    client.send(HELD)
    client.close(aborted=True)
    await turns()
    site.exchanges[0].on_gone(lambda: site.requests.append(site.exchanges[0].request))
    await turns()
    assert (site.gone, len(site.requests)) == (1, 1)


async def test_who_is_answered_has_not_gone() -> None:
    site, _, client = kept()
    client.send(HELD)
    site.exchanges[0].respond(Response())
    client.close(aborted=True)
    await turns()
    assert site.gone == 0


async def test_after_the_client_has_gone_an_exchange_does_nothing() -> None:
    site, server, client = kept()
    client.send(HELD)
    client.close(aborted=False)
    await turns()
    site.exchanges[0].begin(Response())
    site.exchanges[0].write(b"a")
    site.exchanges[0].end()
    site.exchanges[0].respond(Response())
    assert (bytes(client.received), server.open_exchanges) == (b"", 0)


async def test_a_handler_that_raises_is_answered_by_the_site() -> None:
    _, server, client = kept()
    client.send(b"GET /wrong HTTP/1.1\r\n\r\n" + b"GET /bad-header HTTP/1.1\r\n\r\n" + GET)
    assert client.statuses == [500, 500, 200]
    assert b"LookupError" in client.received
    assert (b"c: d" in client.received, server.open_exchanges) == (False, 0)


async def test_what_fails_later_is_refused_if_nothing_was_sent_and_torn_if_it_was() -> None:
    site, server, client = kept()
    other = Client(server)
    client.send(HELD)
    other.send(HELD)
    site.exchanges[1].begin(Response())
    for exchange in site.exchanges:
        exchange.fail(LookupError("nothing there"))
    assert (client.statuses, client.closing) == ([500], False)
    assert (other.statuses, other.aborted, server.open_exchanges) == ([200], True, 0)


@pytest.mark.parametrize(
    ("error", "logged"),
    [(LookupError("nothing there"), 1), (InputError("too long"), 0), (WantedFault(), 0)],
)
async def test_a_fault_of_our_own_is_logged_and_a_refusal_is_not(
    error: Exception, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    site, _, client = kept()
    site.error = error
    client.send(b"GET /wrong HTTP/1.1\r\n\r\n")
    await turns()
    assert (client.statuses, len(caplog.records)) == ([500], logged)


async def test_a_stream_that_fails_is_torn(caplog: pytest.LogCaptureFixture) -> None:
    _, server, client = kept()
    client.send(b"GET /torn HTTP/1.1\r\n\r\n")
    await turns()
    assert (client.aborted, server.open_exchanges) == (True, 0)
    assert caplog.record_tuples[0][1] == logging.ERROR


async def test_a_draining_server_closes_idle_connections_and_others_after_their_answer() -> None:
    site, server, busy = kept()
    idle, streaming = Client(server), Client(server)
    busy.send(HELD)
    streaming.send(HELD)
    site.exchanges[1].begin(Response())
    server.stop_listening()
    assert (idle.closing, busy.closing, streaming.closing) == (True, False, False)
    site.exchanges[0].respond(Response())
    site.exchanges[1].end()
    await server.quiet()
    assert b"connection: close" in busy.received
    assert {busy.aborted, streaming.aborted} == {False}


async def test_an_aborted_server_tells_all_handlers_and_is_quiet() -> None:
    site, server, client = kept()
    client.send(HELD)
    await server.abort()
    assert (site.gone, client.aborted, server.open_exchanges) == (1, True, 0)


async def test_a_site_that_loads_is_unready() -> None:
    _, server, client = kept()
    server.loading = True
    client.send(GET + b"GET /nowhere HTTP/1.1\r\n\r\n")
    server.loading = False
    client.send(GET)
    assert client.statuses == [503, 404, 200]


async def test_each_answer_is_told_as_it_begins() -> None:
    told: list[tuple[str, str, str, int]] = []
    server = HttpServer(Kept(), lambda *access: told.append(access))
    Client(server).send(GET + b"GET /held?a=b HTTP/1.1\r\n\r\n" + b"POST /x HTTP/1.1\r\n\r\n")
    assert told == [("192.0.2.1:40000", "GET", "/whole", 200)]


async def test_a_listener_that_fails_does_not_hold_the_answer_up() -> None:
    def fail(client: str, method: str, target: str, status: int) -> None:
        raise LookupError("no such log")

    server = HttpServer(Kept(), fail)
    client = Client(server)
    client.send(GET + GET)
    assert (client.statuses, server.open_exchanges) == ([200, 200], 0)
