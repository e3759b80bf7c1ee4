"""Port-forward: to the engine's real address, and refused where nothing listens."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from servelab.node.serving import forwarding, inspecting

PATH, VERSION = "/portForward/default/llm", "portforward.k8s.io"


@pytest.fixture
async def engine(host: Any) -> AsyncIterator[None]:
    """Something that listens where the pod's engine should; it answers in capitals."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    host.dials = {"llm-uid": f"127.0.0.1:{port}"}
    yield
    listening.close()
    await listening.wait_closed()


def pair(client: Any, first: int, port: int) -> None:
    """Open the two streams of a connection."""
    headers = {"port": str(port), "requestid": str(first)}
    client.open(first, streamtype="error", **headers)
    client.open(first + 2, streamtype="data", **headers)


async def test_bytes_go_both_ways(connect: Any, engine: None) -> None:
    client = await connect()
    assert (await client.ask(PATH, VERSION)).startswith("HTTP/1.1 101 ")
    pair(client, 1, 8000)
    client.send(3, b"hello", fin=True)
    await client.receive(until_ended=3)
    assert client.got[3] == b"HELLO"


async def test_one_connection_carries_many(connect: Any, engine: None) -> None:
    client = await connect()
    await client.ask(PATH, VERSION)
    for first in (1, 5, 9):
        pair(client, first, 8000)
    for number in (11, 3, 7):
        client.send(number, f"n{number}".encode(), fin=True)
    for number in (3, 7, 11):
        await client.receive(until_ended=number) if number not in client.ended else None
    assert {n: client.got[n] for n in (3, 7, 11)} == {3: b"N3", 7: b"N7", 11: b"N11"}


async def test_a_large_body_arrives_whole(connect: Any, engine: None) -> None:
    client, body = await connect(), b"x" * 3_000_000
    await client.ask(PATH, VERSION)
    pair(client, 1, 8000)
    client.send(3, body, fin=True)
    await client.receive(until_ended=3)
    assert client.got[3] == body.upper()


async def test_the_engine_learns_that_its_client_has_gone(connect: Any, host: Any) -> None:
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await reader.read()
        gone.set()
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    host.dials = {"llm-uid": f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"}
    client = await connect()
    await client.ask(PATH, VERSION)
    pair(client, 1, 8000)
    await client.receive(until=3)
    await client.close()
    async with asyncio.timeout(20):
        await gone.wait()
    listening.close()


async def test_a_port_on_which_nothing_listens_is_told_as_containerd_does(
    connect: Any, engine: None
) -> None:
    client = await connect()
    await client.ask(PATH, VERSION)
    pair(client, 1, 9999)
    await client.receive(until_ended=3)
    assert b"IPv4: dial tcp4 127.0.0.1:9999: connect: connection refused" in client.got[1]
    assert {1, 3} & client.reset


async def test_an_engine_that_still_loads_refuses(connect: Any) -> None:
    client = await connect()
    await client.ask(PATH, VERSION)
    pair(client, 1, 8000)
    await client.receive(until_ended=3)
    assert b"connection refused" in client.got[1]


@pytest.mark.parametrize(
    "headers",
    [{}, {"port": "0"}, {"port": "x", "streamtype": "data"}, {"port": "80", "streamtype": "no"}],
)
def test_streams_without_sense_are_not_taken(headers: dict[str, str]) -> None:
    assert forwarding.fault(headers)


async def test_a_pod_that_is_not_there_is_not_found(http: Any) -> None:
    answer = await http.post("/portForward/default/nope")
    assert (answer.status, await answer.text()) == (404, "pod does not exist")


def test_of_pods_that_are_gone_no_engine_is_remembered(host: Any) -> None:
    inspector = inspecting.Inspector(host)
    forwards, one = forwarding.Forwarding(inspector), host.pods[0]
    for number in range(5 * inspecting.LEAST_KEPT):
        pod = dataclasses.replace(one.pod, uid=f"u{number}")
        host.pods = [dataclasses.replace(one, pod=pod)]
        forwards.address(host.pods[0], 8000)
    assert inspector.remembered <= inspecting.LEAST_KEPT
