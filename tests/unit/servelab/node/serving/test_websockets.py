"""WebSockets straight to a kubelet, as one of 1.37.2 with containerd 2.4.2 answered, recorded."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from servelab.node.serving import spdy

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
OLD, OLD_64, V4_64 = "channel.k8s.io", "base64.channel.k8s.io", "v4.base64.channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
EXEC = "/exec/default/plain/main?output=1&error=1&command="
FORWARD = "/portForward/default/llm"


async def said(http: Any, path: str, *protocols: str, send: bytes = b"") -> list[Any]:
    """All messages until the server closes."""
    async with http.ws_connect(path, protocols=protocols) as socket:
        if send:
            await socket.send_bytes(send)
        async with asyncio.timeout(20):
            found = [message.data async for message in socket]
        assert socket.close_code == 1000
        return found


@pytest.mark.parametrize(
    ("protocol", "messages"),
    [
        (V5, [b"\x01", b"\x01hi\n", b'\x03{"metadata":{},"status":"Success"}']),
        (V4, [b"\x01", b"\x01hi\n", b'\x03{"status":"Success"}']),
        (OLD, [b"\x01", b"\x01hi\n"]),
        (OLD_64, ["1", "1aGkK"]),
        (V4_64, ["1", "1aGkK", "3eyJzdGF0dXMiOiJTdWNjZXNzIn0="]),
        ("", [b"\x01", b"\x01hi\n"]),
    ],
)
async def test_a_command_speaks_each_protocol(
    http: Any, protocol: str, messages: list[Any]
) -> None:
    protocols = (protocol,) if protocol else ()
    assert await said(http, f"{EXEC}echo&command=hi", *protocols) == messages


CODE_1 = '"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"1"}]}}'
ENDED = "command terminated with non-zero exit code: "


@pytest.mark.parametrize(
    ("protocol", "last"),
    [
        (
            V5,
            f'{{"metadata":{{}},"status":"Failure","message":"{ENDED}'
            f'command terminated with exit code 1",{CODE_1}',
        ),
        (
            V4,
            f'{{"status":"Failure","message":"{ENDED}'
            f'error executing command [false], exit code 1",{CODE_1}',
        ),
        (OLD, f"{ENDED}error executing command [false], exit code 1"),
    ],
)
async def test_an_exit_code_is_told_as_whoever_answers_does(
    http: Any, protocol: str, last: str
) -> None:
    assert (await said(http, f"{EXEC}false", protocol))[-1] == b"\x03" + last.encode()


async def test_what_cannot_be_run_is_told_twice_over_by_the_kubelet(http: Any) -> None:
    new, old = [json.loads((await said(http, f"{EXEC}nosuch", each))[-1][1:]) for each in (V5, V4)]
    assert old["message"].startswith(
        "Internal error occurred: error executing command in container: failed to exec in "
    )
    assert new["message"] == f"Internal error occurred: {old['message']}"
    assert new["details"] == {"causes": [{"message": old["message"]}]}
    assert list(new) == ["metadata", "status", "message", "reason", "details", "code"]


@pytest.mark.parametrize(
    ("path", "protocol", "status", "text"),
    [
        (f"{EXEC}ls", "foo", 403, ""),
        ("/exec/default/plain/nope?output=1", V5, 500, 'container not found ("nope")'),
        (
            "/exec/default/plain/main?command=ls",
            V5,
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (f"{FORWARD}?port=8000", "portforward.k8s.io", 403, ""),
        (FORWARD, V4, 400, 'query parameter "port" is required'),
        (f"{FORWARD}?port=0", V4, 400, 'port "0" must be > 0'),
        (FORWARD, "SPDY/3.1+foo", 400, 'query parameter "port" is required'),
        (
            FORWARD,
            "SPDY/3.1+foo.k8s.io",
            403,
            "unable to upgrade: unable to negotiate protocol: client supports [foo.k8s.io], "
            "server accepts [portforward.k8s.io]\n",
        ),
        ("/portForward/default/nope", TUNNEL, 404, "pod does not exist"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_its_words(
    http: Any, path: str, protocol: str, status: int, text: str
) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": protocol,
    }
    answer = await http.get(path, headers=headers)
    assert (answer.status, await answer.text()) == (status, text)


@pytest.mark.parametrize("path", [f"{EXEC}ls", FORWARD])
async def test_without_an_upgrade_there_is_nothing(http: Any, path: str) -> None:
    answer = await http.get(path)
    assert (answer.status, await answer.text()) == (500, "Upgrade request required\n")


@pytest.fixture
async def engine(host: Any) -> AsyncIterator[None]:
    """What listens for the pod's engine answers in capitals, and in lower case on port 8002."""

    async def capitals(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readuntil(b".")).upper())
        writer.close()

    async def lower(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readuntil(b".")).lower())
        writer.close()

    servers = [await asyncio.start_server(each, "127.0.0.1", 0) for each in (capitals, lower)]
    dials = [f"127.0.0.1:{each.sockets[0].getsockname()[1]}" for each in servers]
    host.dials = dict(zip(("llm-uid", "llm-uid:8002"), dials, strict=True))
    yield
    for each in servers:
        each.close()
        await each.wait_closed()


@pytest.mark.parametrize(("port", "told"), [(8000, b"HELLO."), (8002, b"hello.")])
async def test_an_older_websocket_has_two_channels_for_a_port(
    http: Any, engine: None, port: int, told: bytes
) -> None:
    number = port.to_bytes(2, "little")
    got = await said(http, f"{FORWARD}?port={port}", V4, send=b"\x00Hello.")
    assert got == [b"\x00" + number, b"\x01" + number, b"\x00" + told]


async def test_several_ports_share_an_older_websocket(http: Any, engine: None) -> None:
    async with http.ws_connect(f"{FORWARD}?port=8000,8002", protocols=(V4,)) as socket:
        await socket.send_bytes(b"\x02Two.")
        await socket.send_bytes(b"\x00One.")
        got = [message.data async for message in socket]
    assert {b"\x00ONE.", b"\x02two."} <= set(got)
    assert [each[:1] for each in got[:4]] == [b"\x00", b"\x01", b"\x02", b"\x03"]


async def test_a_port_on_which_nothing_listens_is_told_on_its_channel_of_errors(
    http: Any, engine: None
) -> None:
    got = await said(http, f"{FORWARD}?port=8001", V4)
    assert got[2].startswith(b"\x01error forwarding port 8001 to pod ")
    assert b"IPv4: dial tcp4 127.0.0.1:8001: connect: connection refused" in got[2]


class Tunnelled:
    """SPDY through a WebSocket, as a client has it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._in, self._out = spdy.Reader(), spdy.Writer()

    async def open(self, number: int, kind: str, port: int) -> None:
        headers = {"streamtype": kind, "port": str(port), "requestid": "0"}
        await self.socket.send_bytes(self._out.open(number, headers))

    async def until_ended(self, number: int) -> dict[int, bytes]:
        """What comes on all streams until that one ends."""
        got: dict[int, bytes] = {}
        async with asyncio.timeout(20):
            async for message in self.socket:
                for frame in self._in.feed(message.data):
                    if isinstance(frame, spdy.Data):
                        got[frame.stream] = got.get(frame.stream, b"") + frame.payload
                        if frame.fin and frame.stream == number:
                            return got
                    elif isinstance(frame, spdy.Broken) and frame.stream == number:
                        return got
        return got


@pytest.mark.parametrize(("port", "told"), [(8000, b"HELLO."), (8002, b"hello.")])
async def test_spdy_goes_through_a_websocket(
    http: Any, engine: None, port: int, told: bytes
) -> None:
    async with http.ws_connect(FORWARD, protocols=(TUNNEL,)) as socket:
        assert socket.protocol == TUNNEL
        client = Tunnelled(socket)
        await client.open(1, "error", port)
        await client.open(3, "data", port)
        await socket.send_bytes(spdy.data(3, b"Hello."))
        assert (await client.until_ended(3))[3] == told


async def test_a_tunnel_tells_what_does_not_listen(http: Any) -> None:
    async with http.ws_connect(FORWARD, protocols=(TUNNEL,)) as socket:
        client = Tunnelled(socket)
        await client.open(1, "error", 8001)
        await client.open(3, "data", 8001)
        assert b"connection refused" in (await client.until_ended(3))[1]


async def test_large_answers_come_whole_through_a_tunnel(http: Any, host: Any) -> None:
    body = bytes(range(256)) * 20_000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host.dials = {"llm-uid": f"127.0.0.1:{server.sockets[0].getsockname()[1]}"}
    async with http.ws_connect(FORWARD, protocols=(TUNNEL,), max_msg_size=0) as socket:
        client = Tunnelled(socket)
        await client.open(1, "error", 8000)
        await client.open(3, "data", 8000)
        assert (await client.until_ended(3))[3] == body
    server.close()
    await server.wait_closed()
