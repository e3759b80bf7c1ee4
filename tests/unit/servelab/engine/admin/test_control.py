"""An engine under control, over real HTTP on the loopback: public side and admin side."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from modelserve.adapters.clock import SystemClock
from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.admin.control import Control
from servelab.engine.admin.server import AdminServer, Controlled
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer

STEP_S = 0.001
BODY = {"model": "m", "prompt": "hello", "max_tokens": 3, "ignore_eos": True}


class Lab:
    """One engine, its admin endpoint, and a client of both."""

    def __init__(self, http: aiohttp.ClientSession, public: str, admin: str) -> None:
        self.http = http
        self.public = public
        self.admin = admin
        self.exits: list[int] = []

    async def put(self, path: str, document: Any = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        async with self.http.put(self.admin + path, data=body) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def delete(self, path: str) -> Any:
        async with self.http.delete(self.admin + path) as response:
            return await response.json()

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(self.public + path) as response:
            return response.status, await response.text()

    async def complete(self) -> tuple[int, Any]:
        async with self.http.post(self.public + "/v1/completions", json=BODY) as response:
            return response.status, await response.json()

    async def metric(self, name: str) -> float:
        _, text = await self.get("/metrics")
        found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", text, re.MULTILINE)
        assert found is not None
        return float(found[1])


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    clock = SystemClock()
    exits: list[int] = []
    control = Control(clock, exits.append)
    spec = EngineSpec(
        *("m", "org/model", CoreConfig(8, 512, 8192, 4096), SteadyLaw(STEP_S)),
        *(0.9, 1, profiles.of(EngineType.VLLM)),
    )
    server = EngineServer(spec, clock, control=control)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    public = f"http://127.0.0.1:{sock.getsockname()[1]}"
    admin = AdminServer({"m": Controlled("m", public, control)})
    await admin.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as http:
        lab = Lab(http, public, admin.url)
        lab.exits = exits
        yield lab
    await admin.stop()
    await server.kill()


async def test_a_queue_metric_is_what_was_put_until_it_is_deleted(lab: Lab) -> None:
    answer = await lab.put("/queue/waiting", 20)
    assert (answer["shown"], answer["real"]) == (20, 0)
    assert await lab.metric("vllm:num_requests_waiting") == 20
    await lab.delete("/queue/waiting")
    assert await lab.metric("vllm:num_requests_waiting") == 0


async def test_put_replaces_all_metrics_and_one_path_only_one(lab: Lab) -> None:
    await lab.put("/queue", {"waiting": 5, "running": 7})
    await lab.put("/queue/kv_usage", 0.5)
    assert set((await lab.put("/queue/kv_usage", 0.6))["set"]) >= {"value"}
    answer = await lab.put("/queue", {"kv_usage": 0.75})
    assert set(answer["set"]) == {"kv_usage"}
    assert await lab.metric("vllm:kv_cache_usage_perc") == 0.75


async def test_a_wave_that_starts_later_shows_the_truth_until_then(lab: Lab) -> None:
    answer = await lab.put("/queue", {"waiting": {"value": 9, "start_s": 3600}})
    assert answer["shown"]["waiting"] == 0


async def test_the_public_port_has_no_admin_paths(lab: Lab) -> None:
    for path in ("/queue", "/faults", "/engines", "/engines/m/queue", "/"):
        assert (await lab.get(path))[0] == 404


async def test_all_requests_for_generation_can_fail_in_the_engines_own_words(lab: Lab) -> None:
    await lab.put("/faults/errors", {"status": 500})
    status, body = await lab.complete()
    assert (status, body["error"]["code"]) == (500, 500)
    await lab.put("/faults/errors")
    assert (await lab.complete())[0] == 503
    assert (await lab.get("/health"))[0] == 200
    await lab.delete("/faults")
    assert (await lab.complete())[0] == 200


async def test_the_share_that_fails_is_the_same_for_the_same_seed(lab: Lab) -> None:
    async def statuses() -> list[int]:
        await lab.put("/faults/errors", {"share": 0.5, "seed": 3})
        return [(await lab.complete())[0] for _ in range(12)]

    first = await statuses()
    assert set(first) == {200, 503}
    assert await statuses() == first


async def test_a_hang_lets_no_step_end_until_it_is_lifted(lab: Lab) -> None:
    await lab.put("/faults/hang")
    request = asyncio.create_task(lab.complete())
    while await lab.metric("vllm:num_requests_running") == 0:
        pass
    assert (await lab.get("/health"))[0] == 200
    assert not request.done()
    await lab.delete("/faults/hang")
    assert (await request)[0] == 200


async def test_a_silent_hang_answers_nothing_until_it_is_lifted(lab: Lab) -> None:
    await lab.put("/faults/hang", {"health": "silent"})
    health = asyncio.create_task(lab.get("/health"))
    metrics = asyncio.create_task(lab.get("/metrics"))
    await lab.put("/queue/waiting", 1)  # The admin side answers.
    assert not health.done()
    await lab.delete("/faults")
    assert [(await task)[0] for task in (health, metrics)] == [200, 200]


async def test_a_hang_may_end_by_itself(lab: Lab) -> None:
    await lab.put("/faults/hang", {"health": "silent", "for_s": 0.05})
    assert (await lab.complete())[0] == 200


async def test_an_unready_engine_fails_its_health_check_and_works(lab: Lab) -> None:
    await lab.put("/faults/unready")
    assert (await lab.get("/health"))[0] == 503
    assert (await lab.complete())[0] == 200


async def test_stale_metrics_stay_and_a_scrape_gap_is_503(lab: Lab) -> None:
    await lab.put("/faults/stale_metrics")
    before = await lab.get("/metrics")
    await lab.complete()
    assert await lab.get("/metrics") == before
    await lab.put("/faults/scrape_gap")
    assert (await lab.get("/metrics"))[0] == 503
    await lab.delete("/faults")
    assert await lab.get("/metrics") != before


async def test_counters_start_from_zero_again(lab: Lab) -> None:
    await lab.complete()
    assert await lab.metric("vllm:generation_tokens_total") == 3
    await lab.put("/faults/counter_reset")
    while await lab.metric("vllm:generation_tokens_total") != 0:
        pass
    await lab.complete()
    assert await lab.metric("vllm:generation_tokens_total") == 3


async def test_an_exit_is_told_with_its_code(lab: Lab) -> None:
    await lab.put("/faults/exit", {"code": 137})
    while not lab.exits:
        await lab.get("/health")
    assert lab.exits == [137]


async def test_a_slow_engine_takes_longer_for_each_step(lab: Lab) -> None:
    await lab.put("/faults/slow", {"factor": 60})
    await lab.complete()
    decode_s = await lab.metric("vllm:request_decode_time_seconds_sum")
    assert decode_s == pytest.approx(2 * 60 * STEP_S)


async def test_a_step_that_was_slow_ends_when_it_is_no_longer(lab: Lab) -> None:
    await lab.put("/faults/slow", {"factor": 10_000})
    request = asyncio.create_task(lab.complete())
    while await lab.metric("vllm:num_requests_running") == 0:
        pass
    await lab.delete("/faults/slow")
    assert (await request)[0] == 200
