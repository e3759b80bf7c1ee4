"""An engine on a socket of its own, with a small fast model of time."""

import json
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from modelserve.adapters.clock import SystemClock
from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer

# What the operator's own launch switches on, where an engine has it off.
METRICS_ON = {
    EngineType.SGLANG: (("enable-metrics", ""),),
    EngineType.TENSORRT_LLM: (("return-perf-metrics", ""), ("enable-iter-perf-stats", "")),
}


class Running:
    """A served engine and a client for it."""

    def __init__(self, server: EngineServer, http: aiohttp.ClientSession, lines: list[str]) -> None:
        self.server = server
        self.http = http
        self.lines = lines

    async def post(self, path: str, body: object) -> tuple[int, dict[str, Any]]:
        async with self.http.post(path, json=body) as response:
            return response.status, await response.json()

    async def events(self, path: str, body: object) -> list[Any]:
        async with self.http.post(path, json=body) as response:
            text = await response.text()
        datas = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        return [data if data == "[DONE]" else json.loads(data) for data in datas]

    async def metric(self, name: str) -> float:
        async with self.http.get("/metrics") as response:
            found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", await response.text(), re.MULTILINE)
        assert found is not None
        return float(found[1])

    async def until(self, name: str, value: float) -> None:
        """Wait until a metric has this value."""
        while await self.metric(name) != value:
            pass


@asynccontextmanager
async def serving(
    step_s: float = 0.001,
    *,
    slots: int = 8,
    queue_limit: int | None = None,
    engine: EngineType = EngineType.VLLM,
    prefix_caching: bool = False,
    options: tuple[tuple[str, str], ...] | None = None,
) -> AsyncIterator[Running]:
    config = CoreConfig(
        *(slots, 512, 8192, 4096), queue_limit=queue_limit, prefix_caching=prefix_caching
    )
    spec = EngineSpec(
        *("m", "org/model", config, SteadyLaw(step_s), 0.9, 1, profiles.of(engine)),
        options=METRICS_ON.get(engine, ()) if options is None else options,
    )
    lines: list[str] = []
    server = EngineServer(spec, SystemClock(), lines.append)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with aiohttp.ClientSession(base) as http:
        try:
            yield Running(server, http, lines)
        finally:
            await server.kill()


@pytest.fixture
def running() -> Callable[..., AbstractAsyncContextManager[Running]]:
    """Serves an engine while its context is open."""
    return serving
