"""What an engine holds after many requests is what it held before, without the collector's help."""

import gc
import json
from collections.abc import Iterator

import pytest

from modelserve.adapters.clock import SystemClock
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.httpd.connection import Connection
from servelab.engine.httpd.loopback import Client, kept, post, turns
from servelab.engine.server import EngineServer

PATH = "/v1/chat/completions"
ASK = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 40}
WHOLE = post(PATH, json.dumps(ASK).encode(), "Content-Type: application/json")
STREAM = post(
    PATH,
    json.dumps(ASK | {"stream": True, "ignore_eos": True}).encode(),
    "Content-Type: application/json",
)
REFUSED = post(PATH, json.dumps(ASK | {"model": "x"}).encode(), "Content-Type: application/json")
ROUND = 60


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def engine() -> EngineServer:
    """A thousand times as fast as time; its prefix cache is full after a few answers."""
    config = CoreConfig(8, 512, 8192, kv_blocks=1024)
    return EngineServer(EngineSpec("m", "m", config, SteadyLaw(0.001), 0.9, 1), SystemClock(1000.0))


async def ask(server: EngineServer, client: Client, request: bytes) -> None:
    """One request and its whole answer."""
    client.received.clear()
    client.send(request)
    while server.http.open_exchanges:
        await turns(1)
    assert client.received.startswith(b"HTTP/1.1 ")


def garbage(server: EngineServer) -> int:
    """Objects that only the collector would find."""
    server.exporter.render()
    return gc.collect()


def connections() -> set[int]:
    """Those that there are, by identity: of what is compiled there are no weak references."""
    return {id(each) for each in gc.get_objects() if type(each) is Connection}


@pytest.mark.parametrize("request_", [WHOLE, STREAM, REFUSED], ids=["whole", "stream", "refused"])
async def test_an_answer_leaves_nothing_to_the_collector(request_: bytes) -> None:
    server = engine()
    client = Client(server.http)
    await ask(server, client, request_)
    garbage(server)
    for _ in range(ROUND):
        await ask(server, client, request_)
    assert garbage(server) == 0
    await server.kill()


async def test_requests_of_all_kinds_leave_as_many_objects_as_there_were() -> None:
    server, counts = engine(), []
    for _ in range(3):
        for _ in range(ROUND):
            client = Client(server.http)
            for request in (WHOLE, STREAM, REFUSED):
                await ask(server, client, request)
            client.send(STREAM)
            client.close(aborted=True)
            await turns()
        garbage(server)
        counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < ROUND / 2, "less than one object in eight requests"
    await server.kill()


async def test_a_connection_that_is_lost_holds_itself_no_longer() -> None:
    _, _, client = kept()
    client.send(b"GET /whole HTTP/1.1\r\n\r\n")
    lost = id(client.connection)
    assert lost in connections()
    client.close(aborted=False)
    await turns()
    del client.connection
    assert lost not in connections()
