"""The operator's port: token, demand, fences, shares."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from modelserve.api import wire
from modelserve.api.keys import Key

KEY = Key("default", "llama")
FENCE = wire.FenceRequest("default", "llama", "f1", ("a",)).to_json()


async def line(response: aiohttp.ClientResponse) -> wire.DemandSnapshot:
    return wire.DemandSnapshot.parse(json.loads(await response.content.readline()))


def stream(lab: Any) -> Any:
    headers = {"Authorization": "Bearer secret"}
    return lab.session.get(lab.internal_url + wire.DEMAND_PATH, headers=headers)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
async def test_without_the_token_nothing_is_told_or_done(lab: Any, headers: Any) -> None:
    for path in (wire.FENCE_PATH, wire.UNFENCE_PATH, wire.SHARE_PATH):
        async with lab.session.post(lab.internal_url + path, headers=headers) as response:
            assert response.status == 401


async def test_a_fence_is_granted_over_http_and_bars_until_unfenced(lab: Any) -> None:
    engine = await lab.engine()
    lab.pod("a", engine.address)
    async with lab.told(wire.FENCE_PATH, FENCE) as response:
        assert wire.FenceAnswer.parse(await response.json()).granted
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    async with lab.told(wire.UNFENCE_PATH, {"fenceId": "f1"}):
        pass
    assert (await asking)[0] == 200


async def test_a_fence_lapses_when_the_operator_dies(lab: Any) -> None:
    engine = await lab.engine()
    lab.pod("a", engine.address)
    async with lab.told(wire.FENCE_PATH, FENCE):
        pass
    assert (await lab.asked())[0] == 200


async def test_a_fence_is_refused_while_a_request_is_held(lab: Any) -> None:
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    async with lab.told(wire.FENCE_PATH, FENCE) as response:
        answer = wire.FenceAnswer.parse(await response.json())
    assert answer == wire.FenceAnswer(False, 1, 0)
    asking.cancel()


async def test_a_share_caps_what_is_in_flight(lab: Any) -> None:
    share = wire.Share("default", "llama", 7).to_json()
    async with lab.told(wire.SHARE_PATH, share) as response:
        assert response.status == 200
    assert lab.gateway.dispatcher.machine(KEY).cap == 7


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"namespace": 1}'])
async def test_a_body_that_makes_no_sense_is_400(lab: Any, body: bytes) -> None:
    headers = {"Authorization": "Bearer secret"}
    url = lab.internal_url + wire.SHARE_PATH
    async with lab.session.post(url, data=body, headers=headers) as response:
        assert response.status == 400
        assert "/share" in (await response.json(content_type=None))["error"]


async def test_the_stream_begins_with_a_full_snapshot(lab: Any) -> None:
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    async with stream(lab) as response:
        snapshot = await line(response)
    assert (snapshot.gateway, snapshot.epoch, snapshot.models[0].held) == ("g", "e1", 1)
    asking.cancel()


async def test_a_first_held_request_is_pushed_and_its_leaving_too(lab: Any) -> None:
    async with stream(lab) as response:
        assert (await line(response)).models == ()
        asking = asyncio.create_task(lab.asked())
        assert await held(response, 1)
        asking.cancel()
        assert await held(response, 0)


async def test_without_news_there_is_a_snapshot_all_the_same(lab: Any) -> None:
    async with stream(lab) as response:
        assert [(await line(response)).sequence for _ in range(3)] == [1, 2, 3]


async def held(response: aiohttp.ClientResponse, count: int) -> bool:
    """Read on until this many are held."""
    async with asyncio.timeout(20):
        while True:
            models = (await line(response)).models
            if models and models[0].held == count:
                return True
