"""However the bytes of a connection are cut, its answers are the same."""

import asyncio
import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.exchange import Response
from servelab.engine.httpd.loopback import TIGHT, kept, post, turns

GET = b"GET /whole HTTP/1.1\r\nHost: x\r\n\r\n"
HELD = b"GET /held HTTP/1.1\r\n\r\n"
PIECES = [
    GET,
    HELD,
    HELD.replace(b"/held", b"/nowhere"),
    post("/echo", b"x" * 300, "A: b"),
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nt: u\r\n\r\n",
    b"HEAD /whole HTTP/1.1\r\n\r\n",
    b"PUT /whole HTTP/1.1\r\nContent-Length: 2\r\n\r\nab",
    b"GET /wrong HTTP/1.1\r\n\r\n",
    b"GET /whole HTTP/1.0\r\n\r\n",
    b"GET /whole HTTP/1.1\r\nConnection: close\r\n\r\n",
    b"GET /whole HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"\0garbage",
    b"POST /echo HTTP/1.1\r\nContent-Length: 99999\r\n\r\n",
    b"\r\n",
]
ANYTHING = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=20)), max_size=6)


@given(ANYTHING.map(b"".join), st.lists(st.integers(0, 2000), max_size=12))
def test_answers_do_not_depend_on_how_the_bytes_are_cut(data: bytes, cuts: list[int]) -> None:
    async def answers(parts: Sequence[bytes]) -> tuple[bytes, bool]:
        site, server, client = kept()
        client.send(*parts)
        await turns()
        while site.exchanges:
            site.exchanges.pop().respond(Response(body=b"held"))
            await turns()
        assert (server.open_exchanges, server.budget.room_bytes) == (0, TIGHT.bodies_bytes)
        return bytes(client.received), client.closing or client.ended

    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [data[a:b] for a, b in itertools.pairwise(bounds)]
    assert asyncio.run(answers(parts)) == asyncio.run(answers([data]))
