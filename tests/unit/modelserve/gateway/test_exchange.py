"""What becomes of a client's request, seen from outside."""

import asyncio
import json
import logging
import socket
import struct
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from modelserve import ports
from modelserve.api.keys import Key

KEY = Key("default", "llama")
EVENTS = (b'data: {"n": 1}\n\n', b'data: {"n"', b": 2}\r\n\r\n", b"data: [DONE]\n\n")


async def test_a_request_at_zero_is_held_and_answered_once_a_replica_is_ready(lab: Any) -> None:
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    engine = await lab.engine()
    lab.pod("a", engine.address)
    assert (await asking)[0] == 200


async def test_a_probe_admits_a_replica_before_it_is_ready(lab: Any) -> None:
    engine = await lab.engine()
    engine.healthy = False
    lab.pod("a", engine.address, ready=False)
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    engine.healthy = True
    assert (await asking)[0] == 200
    assert lab.gateway.dispatcher.machine(KEY).admitted == ("a",)


async def test_a_stream_is_relayed_byte_for_byte(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.stream(*EVENTS)
    lab.pod("a", engine.address)
    async with lab.ask(stream=True) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["X-ModelServe-Replica"] == "a"
        assert await response.read() == b"".join(EVENTS)


async def test_the_engine_gets_the_body_as_the_client_wrote_it(lab: Any) -> None:
    engine = await lab.engine()
    lab.pod("a", engine.address)
    body = b'{ "model" :"llama","messages":[1],  "x":1e0}'
    headers = {"X-Request-ID": "7", "Connection": "keep-alive, X-Hop", "X-Hop": "1"}
    headers["Content-Type"] = "application/json"
    async with lab.session.post(f"{lab.url}/v1/chat/completions", data=body, headers=headers):
        assert engine.bodies == [body]
    assert engine.headers[0]["X-Request-ID"] == "7"
    assert "X-Hop" not in engine.headers[0]


async def test_a_model_asked_by_namespace_and_name_reaches_the_engine_as_served(lab: Any) -> None:
    engine = await lab.engine()
    lab.model(model={"servedName": "meta/llama"})
    lab.pod("a", engine.address)
    assert (await lab.asked(model="default/llama"))[0] == 200
    assert json.loads(engine.bodies[0])["model"] == "meta/llama"


async def test_a_refused_connection_is_tried_elsewhere(lab: Any) -> None:
    gone, engine = await lab.engine(), await lab.engine()
    await gone.stop()
    lab.pod("a", gone.address)
    lab.pod("b", engine.address)
    answers = await asyncio.gather(*(lab.asked() for _ in range(8)))
    assert [status for status, _ in answers] == [200] * 8


async def test_a_refused_connection_with_nowhere_else_to_go_is_held_again(lab: Any) -> None:
    engine = await lab.engine()
    await engine.stop()
    lab.pod("a", engine.address)
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    await engine.start(int(engine.address.rpartition(":")[2]))
    assert (await asking)[0] == 200


async def test_a_reset_before_the_first_byte_is_tried_elsewhere(lab: Any) -> None:
    bad, good = await lab.engine(), await lab.engine()
    bad.handler = bad.reset
    lab.pod("a", bad.address)
    lab.pod("b", good.address)
    answers = await asyncio.gather(*(lab.asked() for _ in range(4)))
    assert [status for status, _ in answers] == [200] * 4
    assert bad.bodies


async def test_a_request_that_resets_every_engine_ends_with_502(lab: Any) -> None:
    bad = await lab.engine()
    bad.handler = bad.reset
    lab.pod("a", bad.address)
    status, body = await lab.asked()
    assert status == 502
    assert json.loads(body)["error"]["code"] == "engine_lost"
    assert len(bad.bodies) == 3


async def test_a_stream_that_breaks_between_events_ends_with_an_error_event(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.stream(EVENTS[0], then_reset=True)
    lab.pod("a", engine.address)
    async with lab.ask(stream=True) as response:
        first = await response.content.readany()
        engine.go_on.set()
        rest = await response.read()
    assert first == EVENTS[0]
    assert json.loads(rest.removeprefix(b"data: "))["error"]["code"] == "engine_lost"


async def test_a_stream_that_breaks_within_an_event_is_cut(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.stream(EVENTS[1], then_reset=True)
    lab.pod("a", engine.address)
    async with lab.ask(stream=True) as response:
        await response.content.readany()
        engine.go_on.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_a_client_that_leaves_while_held_frees_its_place(lab: Any) -> None:
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    asking.cancel()
    await lab.until(lambda: lab.gateway.dispatcher.held == 0)
    assert asking.cancelled()


async def test_a_client_that_leaves_in_flight_cancels_the_engines_work(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.wait
    lab.pod("a", engine.address)
    asking = asyncio.create_task(lab.asked())
    await engine.asked.wait()
    asking.cancel()
    await engine.cancelled.wait()
    await lab.until(lambda: lab.gateway.dispatcher.in_flight == 0)
    assert lab.gateway.dispatcher.held == 0


async def test_a_client_that_leaves_in_the_middle_of_a_stream_cancels_it(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.stream(EVENTS[0], then_reset=True)
    lab.pod("a", engine.address)
    async with lab.ask(stream=True) as response:
        await response.content.readany()
        response.close()
    await engine.cancelled.wait()
    await lab.until(lambda: lab.gateway.dispatcher.in_flight == 0)
    assert lab.gateway.dispatcher.held == 0


async def test_a_client_that_leaves_as_more_comes_from_the_engine_is_no_error(
    lab: Any, caplog: pytest.LogCaptureFixture
) -> None:
    streams: list[web.StreamResponse] = []

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(EVENTS[0])
        streams.append(response)
        await engine.go_on.wait()
        return response

    engine = await lab.engine()
    engine.handler = stream
    lab.pod("a", engine.address)
    with socket.create_connection(lab.gateway.address) as client:
        await told(client, EVENTS[0])
        # In this order, and before the gateway hears of either.
        await streams[0].write(EVENTS[3])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await lab.until(lambda: lab.gateway.dispatcher.in_flight == 0)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    async with lab.session.get(lab.url + "/metrics") as response:
        assert 'requests_total{code="499"' in await response.text()


async def told(client: socket.socket, wanted: bytes) -> None:
    """Ask for a stream, and read until that has come."""
    body = json.dumps({"model": "llama", "messages": [{}], "stream": True}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    client.setblocking(False)
    got = b""
    while wanted not in got:
        got += await asyncio.get_running_loop().sock_recv(client, 4096)


async def test_requests_past_the_room_wait_for_it_in_order(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.wait
    lab.model(gateway={"slotsPerReplica": 1})
    lab.pod("a", engine.address)
    asking = [asyncio.create_task(lab.asked()) for _ in range(5)]
    await lab.until(lambda: lab.gateway.dispatcher.held == 3)
    assert lab.gateway.dispatcher.in_flight == 2
    engine.go_on.set()
    assert [status for status, _ in await asyncio.gather(*asking)] == [200] * 5


async def test_a_leaving_pod_gets_nothing(lab: Any) -> None:
    leaving, cheap, engine = await lab.engine(), await lab.engine(), await lab.engine()
    lab.pod("a", leaving.address, deletionTimestamp="2026-01-01T00:00:00Z")
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-100"}
    lab.pod("b", cheap.address, annotations=cost)
    lab.pod("c", engine.address)
    await asyncio.gather(*(lab.asked() for _ in range(6)))
    assert (leaving.bodies, cheap.bodies, len(engine.bodies)) == ([], [], 6)


async def test_a_held_stream_gets_comments_that_say_what_it_waits_for(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.stream(*EVENTS)
    lab.model(
        gateway={"keepAliveSeconds": 1}, status={"waitingFor": "image pull\non gpu-1, 41 s left"}
    )
    async with lab.ask(stream=True) as response:
        comment = await response.content.readuntil(b"\n\n")
        lab.pod("a", engine.address)
        rest = await response.read()
    assert comment == b": waiting for llama: image pull on gpu-1, 41 s left\n\n"
    assert rest == b"".join(EVENTS)


async def test_a_failure_after_a_comment_is_an_error_event(lab: Any) -> None:
    lab.model(gateway={"keepAliveSeconds": 1})
    async with lab.ask(stream=True) as response:
        assert (await response.content.readuntil(b"\n\n")).startswith(b": waiting")
        lab.cluster.remove(ports.MODELSERVES, "default", "llama")
        event = await response.read()
    assert json.loads(event.removeprefix(b"data: "))["error"]["code"] == "model_not_found"


async def test_an_engines_refusal_after_a_comment_is_an_error_event(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = _too_long
    lab.model(gateway={"keepAliveSeconds": 1})
    async with lab.ask(stream=True) as response:
        await response.content.readuntil(b"\n\n")
        lab.pod("a", engine.address)
        event = await response.read()
    assert event == b'data: {"error": {"message": "too long"}}\n\n'


async def test_an_engines_refusal_keeps_its_status_and_words(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = _too_long
    lab.pod("a", engine.address)
    assert await lab.asked() == (400, b'{"error": {"message": "too long"}}')


async def _too_long(request: web.Request) -> web.Response:
    return web.json_response({"error": {"message": "too long"}}, status=400)
