"""An SGLang engine over real HTTP, paused and told to abort while it generates."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from modelserve.adapters.clock import SystemClock
from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer

LONG = {"text": "hi", "rid": "long", "sampling_params": {"max_new_tokens": 8000}}
SHORT = {"text": "hi", "sampling_params": {"max_new_tokens": 3}}


class Client:
    """A client of an engine."""

    def __init__(self, server: EngineServer, http: aiohttp.ClientSession) -> None:
        self.server = server
        self.http = http

    async def post(self, path: str, body: object = None) -> Any:
        """The answer as JSON, or its status."""
        async with self.http.post(path, json=body) as answer:
            is_json = answer.content_type == "application/json"
            return await answer.json() if is_json else answer.status

    def begin(self, body: object) -> "asyncio.Task[Any]":
        """Ask for a generation."""
        return asyncio.create_task(self.post("/generate", body))

    async def until(self, running: int) -> None:
        """Wait until so many run."""
        while self.server.load.running != running:
            await asyncio.sleep(0)
            self.server.settle()


@asynccontextmanager
async def serving(step_s: float = 0.001) -> AsyncIterator[Client]:
    config = CoreConfig(4, 512, 8192, 4096, policy=Policy.SGLANG)
    profile = profiles.of(EngineType.SGLANG)
    spec = EngineSpec("m", "m", config, SteadyLaw(step_s), 0.9, 1, profile)
    server = EngineServer(spec, SystemClock(), ends_by_itself=False)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with aiohttp.ClientSession(base) as http:
        try:
            yield Client(server, http)
        finally:
            await server.kill()


async def test_a_request_is_aborted_by_its_name() -> None:
    async with serving() as client:
        answer = client.begin(LONG)
        await client.until(running=1)
        assert await client.post("/abort_request", {"rid": "long"}) == 200
        meta = (await answer)["meta_info"]
    assert (meta["id"], meta["finish_reason"]["type"]) == ("long", "abort")


async def test_a_pause_aborts_and_keeps_who_comes_waiting() -> None:
    async with serving(step_s=0.1) as client:  # the flush comes while the last one is under way
        old = client.begin(LONG)
        await client.until(running=1)
        await client.post("/pause_generation", {})
        assert (await old)["meta_info"]["finish_reason"]["type"] == "abort"
        new = client.begin(SHORT)
        assert await client.post("/flush_cache") == 200
        assert not new.done()
        await client.post("/continue_generation", {})
        assert (await new)["meta_info"]["completion_tokens"] == 3


@pytest.mark.parametrize(("mode", "runs"), [("in_place", 1), ("retract", 0)])
async def test_what_is_stopped_in_its_place_or_put_back_goes_on_after_a_pause(
    mode: str, runs: int
) -> None:
    async with serving() as client:
        answer = client.begin(LONG)
        await client.until(running=1)
        await client.post("/pause_generation", {"mode": mode})
        assert (client.server.load.running, client.server.load.waiting) == (runs, 1 - runs)
        assert (await client.post("/flush_cache") == 200) is (mode == "retract")
        await client.post("/continue_generation", {})
        await client.until(running=1)
        await client.post("/abort_request", {"abort_all": True})
        assert (await answer)["meta_info"]["num_retractions"] == 1 - runs


async def test_a_response_in_the_background_can_be_asked_for_later() -> None:
    async with serving() as client:
        body = {"model": "m", "input": "hi", "background": True}
        refused = await client.post("/v1/responses", body)
    assert refused["error"]["param"] == "background"
