"""Port-forward: connections to the ports on which engines of a pod really listen.

Over SPDY, by itself or through a WebSocket, a client opens two streams for each connection; an
older kind of WebSocket has two channels for each port that the request names.
"""

import asyncio
import contextlib
import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from modelserve import errors
from servelab.node.pods import podspec
from servelab.node.serving import (
    commands,
    connections,
    hosting,
    inspecting,
    portchannels,
    tunnelling,
    upgrading,
    websockets,
)

SPOKEN = ("portforward.k8s.io",)
CHUNK_BYTES = 64 * 1024


class Stream(Protocol):
    """One of the two of a connection."""

    @property
    def broken(self) -> bool:
        """Whether the client is gone, and not only its side closed."""
        ...

    async def read(self) -> bytes: ...
    async def write(self, payload: bytes) -> None: ...
    async def close(self) -> None: ...
    async def reset(self) -> None: ...


@dataclass(slots=True)
class Pair:
    """The two streams of one forwarded connection."""

    data: connections.Stream | None = None
    error: connections.Stream | None = None


class Forwarding:
    """The handler, for all nodes."""

    def __init__(self, inspector: inspecting.Inspector) -> None:
        self._inspector = inspector

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """``/portForward/{namespace}/{pod}``."""
        tunnelled = bool(tunnelling.protocols(request))
        plain = websockets.is_asked(request) and not tunnelled
        try:
            asked = request.query.getall("port", [])
            wanted = portchannels.ports(asked) if plain else ()
        except errors.InputError as error:
            return web.Response(status=400, text=str(error))
        where = request.match_info
        served = self._inspector.host.lookup(where["namespace"], where["pod"])
        if served is None:
            return web.Response(status=404, text=commands.POD_MISSING)
        if where.get("uid", served.pod.uid) != served.pod.uid:
            return web.Response(status=404, text="pod not found")
        if not self._inspector.running(served):
            text = f'pod not found ("{served.pod.name}_{served.pod.namespace}")'
            return web.Response(status=500, text=text)
        if plain:
            return await self._channelled(request, served, wanted)
        if tunnelled:
            return await self._tunnelled(request, served)
        upgraded = upgrading.to_spdy(request, SPOKEN, fault)
        if isinstance(upgraded, web.Response):
            return upgraded
        await self._serve(upgraded[0], served)
        return web.Response()

    async def _tunnelled(
        self, request: web.Request, served: hosting.ServedPod
    ) -> web.StreamResponse:
        socket = await upgrading.to_tunnel(request, SPOKEN)
        if isinstance(socket, web.Response):
            return socket
        connection = connections.Connection(fault)
        carrying = asyncio.create_task(tunnelling.Tunnel(socket, connection).run())
        try:
            await self._serve(connection, served)
            await carrying
        finally:
            carrying.cancel()
        return socket

    async def _channelled(
        self, request: web.Request, served: hosting.ServedPod, wanted: Sequence[int]
    ) -> web.StreamResponse:
        opened = await websockets.opened(request, portchannels.SPOKEN)
        if isinstance(opened, web.Response):
            return opened
        socket = websockets.Channelled(opened)
        await portchannels.carry(socket, wanted, functools.partial(self._forward, served))
        await socket.close()
        return opened

    async def _serve(self, connection: connections.Connection, served: hosting.ServedPod) -> None:
        pairs: dict[str, Pair] = {}
        tasks: set[asyncio.Task[None]] = set()
        async for stream in connection.streams():
            name = _request_id(stream)
            pair = pairs.setdefault(name, Pair())
            if stream.headers["streamtype"] == "data":
                pair.data = stream
            else:
                pair.error = stream
            if pair.data is not None and pair.error is not None:
                del pairs[name]
                work = self._carry(connection, served, pair.data, pair.error)
                task = asyncio.create_task(work)
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(
        self,
        connection: connections.Connection,
        served: hosting.ServedPod,
        data: connections.Stream,
        error: connections.Stream,
    ) -> None:
        try:
            await self._forward(served, int(data.headers["port"]), data, error)
        finally:
            connection.forget(data)
            connection.forget(error)

    async def _forward(
        self, served: hosting.ServedPod, port: int, data: Stream, error: Stream
    ) -> None:
        try:
            address = self.address(served, port)
            if address is None:
                raise ConnectionRefusedError
            reader, writer = await asyncio.open_connection(*address)
        except OSError:
            with contextlib.suppress(ConnectionResetError):
                await error.write(refusal(served.pod, port).encode())
                await data.reset()
                await error.reset()
            return
        await _pump(data, reader, writer)
        with contextlib.suppress(ConnectionResetError):
            await data.close()
            await error.close()

    def address(self, served: hosting.ServedPod, port: int) -> tuple[str, int] | None:
        """Where that port of the pod really is; None if nothing listens there.

        Not where the pod's annotation says: whoever may write pods could have us call anybody.
        """
        for engine in self._inspector.engines(served.pod):
            if self._inspector.find(served, engine.container.name) is None:
                continue
            other = 0 if engine.launch.port == port else port
            host, _, real = self._inspector.host.dial(engine.key, other).rpartition(":")
            if real.isdecimal():
                return host.strip("[]"), int(real)
        return None


def fault(headers: Mapping[str, str]) -> str:
    """What is wrong with a stream's headers; empty if nothing is."""
    port = headers.get("port", "")
    if not port:
        return '"port" header is required'
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        return f'unable to parse "{port}" as a port'
    kind = headers.get("streamtype", "")
    return "" if kind in ("error", "data") else f'invalid stream type "{kind}"'


def refusal(pod: podspec.Pod, port: int) -> str:
    """What containerd says of a port on which nothing listens: it tries IPv4 first, then IPv6."""
    sandbox = hashlib.sha256(f"{pod.uid}/sandbox".encode()).hexdigest()
    space = "host" if pod.raw["spec"].get("hostNetwork") else f"/var/run/netns/cni-{pod.uid}"
    return (
        f"error forwarding port {port} to pod {sandbox}, uid : failed to execute portforward in "
        f'network namespace "{space}": failed to connect to localhost:{port} inside namespace '
        f'"{sandbox}", IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused IPv6 dial '
        f"tcp6 [::1]:{port}: connect: connection refused "
    )


async def _pump(data: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy both ways until the pod has closed its side, or the client is gone."""

    async def upstream() -> None:
        while chunk := await data.read():
            writer.write(chunk)
            await writer.drain()
        if data.broken:
            writer.close()
        elif writer.can_write_eof():
            writer.write_eof()

    async def downstream() -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            await data.write(chunk)

    up = asyncio.create_task(upstream())
    try:
        with contextlib.suppress(ConnectionError):
            await downstream()
    finally:
        up.cancel()
        await asyncio.gather(up, return_exceptions=True)
        writer.close()


def _request_id(stream: connections.Stream) -> str:
    """What joins the two streams; old clients open them one after the other, without a word."""
    told = stream.headers.get("requestid", "")
    if told:
        return told
    return str(stream.number - 2 if stream.headers["streamtype"] == "data" else stream.number)
