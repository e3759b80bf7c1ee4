"""``--api-key``: the API is for who has a key, health and metrics are for all."""

import dataclasses
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from modelserve.adapters.clock import SystemClock
from modelserve.engines import launch
from servelab.engine import assembly
from servelab.engine.server import EngineServer

WORDS = ["vllm", "serve", "llama-3.1-8b", "--max-model-len", "8k", "--api-key", "first", "second"]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    spec = assembly.build({"command": WORDS}, {}, "h100", 0)
    server = EngineServer(dataclasses.replace(spec, served_name="m"), SystemClock())
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{sock.getsockname()[1]}") as session:
        yield session
    await server.kill()


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [
        ("/v1/models", "Bearer first", 200),
        ("/v1/models", "bearer second", 200),
        ("/v1/models", "Bearer third", 401),
        ("/v1/models", "Basic first", 401),
        ("/v1/models", "", 401),
        ("/v1/nothing", "", 401),
        ("/v1/nothing", "Bearer first", 404),
        ("/v1/completions", "", 401),
        ("/v1/completions", "Bearer first", 405),
        ("/health", "", 200),
        ("/metrics", "", 200),
    ],
)
async def test_a_key_opens_the_api(
    http: aiohttp.ClientSession, path: str, header: str, status: int
) -> None:
    async with http.get(path, headers={"Authorization": header} if header else {}) as response:
        assert response.status == status
        if status == 401:
            assert await response.json() == {"error": "Unauthorized"}


def test_a_key_may_come_from_the_environment() -> None:
    container = {
        "command": ["vllm", "serve", "llama-3.1-8b"],
        "env": [{"name": "VLLM_API_KEY", "value": "secret"}],
    }
    found = launch.parse(container, {})
    assert found is not None
    assert dict(found.options)["api-key"] == "secret"
