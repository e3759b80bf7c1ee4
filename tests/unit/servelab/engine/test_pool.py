"""Worker processes: engines by pod UID, refused until served, replaced when a process dies."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from modelserve.errors import InputError
from servelab.engine.pool import WorkerPool

H100 = "NVIDIA-H100-80GB-HBM3"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
CONTAINER: dict[str, Any] = {
    "name": "engine",
    "image": "vllm/vllm-openai:latest",
    "command": ["vllm", "serve", LLAMA],
    "args": ["--served-model-name=m", "--max-num-seqs=4", "--max-model-len=8192"],
}


class Events:
    """What the pool reported."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.exits: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self.logged = asyncio.Event()

    def log(self, uid: str, line: str) -> None:
        self.lines.append((uid, line))
        self.logged.set()


@asynccontextmanager
async def started() -> AsyncIterator[tuple[WorkerPool, Events]]:
    events = Events()
    pool = WorkerPool(
        1, 100.0, on_log=events.log, on_exit=lambda uid, code: events.exits.put_nowait((uid, code))
    )
    await pool.start()
    try:
        yield pool, events
    finally:
        await pool.stop()


async def health(dial: str) -> int | None:
    """Status of /health; None if the connection is refused."""
    async with aiohttp.ClientSession() as http:
        try:
            async with http.get(f"http://{dial}/health") as response:
                return response.status
        except aiohttp.ClientConnectorError:
            return None


async def test_an_engine_refuses_connections_until_served_and_after_its_drain() -> None:
    async with started() as (pool, events):
        dial = await pool.reserve("uid", CONTAINER, {}, H100, 1)
        before = await health(dial)
        await pool.serve("uid")
        served = await health(dial)
        await events.logged.wait()
        await pool.drain("uid", 5.0)
        assert (before, served, await health(dial)) == (None, 200, None)
        assert events.lines[0][0] == "uid"
        assert '"GET /health HTTP/1.1" 200 OK' in events.lines[0][1]
        assert events.exits.empty()


async def test_a_killed_worker_reports_its_engines_and_is_replaced() -> None:
    async with started() as (pool, events):
        await pool.reserve("uid", CONTAINER, {}, H100, 1)
        await pool.serve("uid")
        os.kill(pool.process_ids[0], signal.SIGKILL)
        assert await events.exits.get() == ("uid", 137)
        dial = await pool.reserve("other", CONTAINER, {}, H100, 1)
        await pool.serve("other")
        assert await health(dial) == 200


async def test_an_engine_that_could_not_start_says_why_and_leaves_nothing() -> None:
    container = CONTAINER | {"args": ["--max-model-len=8192000"]}
    async with started() as (pool, _):
        with pytest.raises(InputError, match=r"max.model.len"):
            await pool.reserve("uid", container, {}, H100, 1)
        with pytest.raises(InputError, match="no engine is reserved"):
            await pool.serve("uid")


async def test_a_container_that_is_no_engine_is_refused() -> None:
    async with started() as (pool, _):
        with pytest.raises(InputError, match="no engine that is known"):
            await pool.reserve("uid", {"name": "sh", "image": "busybox"}, {}, H100, 1)


async def test_killing_an_unknown_engine_is_no_error() -> None:
    async with started() as (pool, _):
        await pool.kill("nobody")


async def test_stopping_the_pool_ends_its_processes() -> None:
    async with started() as (pool, _):
        process_id = pool.process_ids[0]
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_an_engine_that_is_open_answers_that_it_loads_until_served() -> None:
    async with started() as (pool, _):
        dial = await pool.reserve("uid", CONTAINER, {}, H100, 1)
        await pool.open("uid")
        loading = await health(dial)
        await pool.serve("uid")
        await pool.serve("uid")
        assert (loading, await health(dial)) == (503, 200)


async def test_the_pool_tells_what_engines_have_done_and_where_they_are() -> None:
    async with started() as (pool, _):
        dial = await pool.reserve("a", CONTAINER, {}, H100, 1)
        assert (pool.dial("a"), pool.dial("b")) == (dial, "")
        assert await pool.loads() == {}
        await pool.serve("a")
        asked = {"model": "m", "prompt": "hello", "max_tokens": 50, "ignore_eos": True}
        url = f"http://{dial}/v1/completions"
        async with aiohttp.ClientSession() as http, http.post(url, json=asked) as response:
            assert response.status == 200
        found = (await pool.loads())["a"]
        assert (found.running, found.steps) == (0, 50)
        assert found.tokens > 50 > found.busy_s > 0
        await pool.kill("a")
        assert (pool.dial("a"), await pool.loads()) == ("", {})


async def test_ports_beside_the_main_one_have_addresses_once_an_engine_serves() -> None:
    words = ["tritonserver", "--model-repository=/models/llama-3.1-8b", "--metrics-port=9002"]
    container = {"name": "engine", "image": "x", "command": words}
    async with started() as (pool, _), aiohttp.ClientSession() as http:
        await pool.reserve("uid", container, {}, H100, 1)
        assert pool.dial("uid", 9002) == ""
        await pool.serve("uid")
        async with http.get(f"http://{pool.dial('uid', 9002)}/metrics") as response:
            assert "nv_inference_request_success" in await response.text()
        assert pool.dial("uid", 8001) == ""
        await pool.kill("uid")
        assert pool.dial("uid", 9002) == ""
