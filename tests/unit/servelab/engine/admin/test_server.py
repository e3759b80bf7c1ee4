"""The admin endpoint's own manners: who may, what it refuses, how it describes itself."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from modelserve import errors
from modelserve.testing.clock import ManualClock
from servelab.engine.admin import documents
from servelab.engine.admin.control import Control
from servelab.engine.admin.server import AdminServer, Controlled


class Idle:
    """The gauges of an engine at rest."""

    running = 0
    waiting = 0
    kv_usage = 0.0
    prefix_tokens = (0, 0)


def controlled(*names: str) -> dict[str, Controlled]:
    found = {}
    for name in names:
        control = Control(ManualClock())
        control.load(Idle())
        found[name] = Controlled(name, f"http://{name}", control)
    return found


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def two() -> AsyncIterator[AdminServer]:
    server = AdminServer(controlled("a", "b"), token="secret")
    await server.start("127.0.0.1", 0)
    yield server
    await server.stop()


MAY = {"Authorization": "Bearer secret"}


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "x"}])
async def test_without_the_token_nothing_is_told(
    two: AdminServer, http: aiohttp.ClientSession, header: dict[str, str]
) -> None:
    for path in ("/", "/engines/a/queue", "/nowhere"):
        async with http.get(two.url + path, headers=header) as response:
            assert (response.status, "bearer token" in await response.text()) == (401, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("GET", "/queue", b"", 400, "several engines run here: use /engines/NAME/queue"),
        ("GET", "/engines/c/queue", b"", 404, "unknown engine 'c'; there are a, b"),
        ("PUT", "/engines/a/faults/flood", b"", 404, "unknown fault 'flood'; there are slow"),
        ("PUT", "/engines/a/queue", b"{", 400, "Invalid JSON"),
        ("PUT", "/engines/a/queue", b"x" * 70_000, 413, "Too Large"),
        ("POST", "/engines/a/queue", b"", 405, "Method Not Allowed"),
        ("GET", "/nowhere", b"", 404, "GET / describes what there is"),
    ],
)
async def test_what_it_cannot_do_is_one_sentence_in_json(
    two: AdminServer,
    http: aiohttp.ClientSession,
    method: str,
    path: str,
    body: bytes,
    status: int,
    sentence: str,
) -> None:
    async with http.request(method, two.url + path, data=body, headers=MAY) as response:
        assert response.status == status
        assert sentence in (await response.json())["error"]


async def test_engines_are_changed_each_by_itself(
    two: AdminServer, http: aiohttp.ClientSession
) -> None:
    async with http.put(f"{two.url}/engines/a/queue/waiting", data=b"5", headers=MAY) as response:
        assert response.status == 200
    for name, waiting in (("a", 5), ("b", 0)):
        async with http.get(f"{two.url}/engines/{name}/queue", headers=MAY) as response:
            assert (await response.json())["shown"]["waiting"] == waiting


async def test_it_describes_every_document(two: AdminServer, http: aiohttp.ClientSession) -> None:
    async with http.get(two.url + "/", headers=MAY) as response:
        document = await response.json()
    schemas = document["components"]["schemas"]
    assert set(schemas["Faults"]["properties"]) == set(documents.KINDS)
    assert set(schemas["Queue"]["properties"]) == set(documents.METRICS)
    text = str(document)
    assert all(f"#/components/schemas/{name}" not in text or name in schemas for name in schemas)


async def test_a_taken_address_is_told(two: AdminServer) -> None:
    port = int(two.url.rpartition(":")[2])
    with pytest.raises(errors.SetUpError, match="--admin-listen"):
        await AdminServer(controlled("a")).start("127.0.0.1", port)
