"""The streams of one exec or attach: input, output, errors and the status at the end.

SPDY has a stream for each; a WebSocket has one byte before each message that says which.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from modelserve import errors
from servelab.node.serving import connections, upgrading, websockets

SPOKEN = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
# A kubelet answers it, and speaks SPDY with containerd, which answers all that is older.
TRANSLATED = "v5.channel.k8s.io"
STREAMS_REAL_S = 30.0
_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255


class NoStreams(errors.ModelServeError):
    """The client did not open the streams that it asked for."""


@dataclass(frozen=True, slots=True)
class Options:
    """Which streams there are. A terminal has no stream of errors of its own."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


def options(query: Mapping[str, str]) -> Options:
    """Read them from a request. Raises InputError with a kubelet's words."""

    def told(name: str) -> bool:
        return query.get(name) == "1"

    tty = told("tty")
    found = Options(told("input"), told("output"), told("error") and not tty, tty)
    if not (found.stdin or found.stdout or found.stderr):
        raise errors.InputError("you must specify at least 1 of stdin, stdout, stderr")
    return found


class Channels(Protocol):
    """Both ways to carry them. Writing raises ConnectionResetError once the client is gone."""

    async def read(self) -> bytes:
        """The next bytes of the input; none at its end."""
        ...

    async def out(self, payload: bytes) -> None: ...

    async def err(self, payload: bytes) -> None: ...

    async def gone(self) -> None:
        """Returns when the client has left."""
        ...

    async def finish(self, status: Mapping[str, Any]) -> None:
        """Tell how it ended, and close."""
        ...


class SpdyChannels:
    """A stream for each."""

    def __init__(self, connection: connections.Connection, version: str, wanted: Options) -> None:
        self._connection = connection
        self._plain_status = version != SPOKEN[0]
        self._resizes = wanted.tty and version in SPOKEN[:2]
        self._wanted = wanted
        self._streams: dict[str, connections.Stream] = {}

    async def gather(self) -> None:
        """Wait for the client's streams. Raises NoStreams."""
        wanted = self._wanted
        names = {"error"}
        names |= {"stdin"} if wanted.stdin else set()
        names |= {"stdout"} if wanted.stdout else set()
        names |= {"stderr"} if wanted.stderr else set()
        names |= {"resize"} if self._resizes else set()
        try:
            async with asyncio.timeout(STREAMS_REAL_S):
                async for stream in self._connection.streams():
                    self._streams[stream.headers.get("streamtype", "")] = stream
                    if names <= self._streams.keys():
                        return
        except TimeoutError:
            self._connection.close()
        raise NoStreams("timed out waiting for client to create streams")

    async def read(self) -> bytes:
        stream = self._streams.get("stdin")
        return b"" if stream is None else await stream.read()

    async def out(self, payload: bytes) -> None:
        await self._write("stdout", payload)

    async def err(self, payload: bytes) -> None:
        await self._write("stderr", payload)

    async def gone(self) -> None:
        await self._connection.ended.wait()

    async def finish(self, status: Mapping[str, Any]) -> None:
        with contextlib.suppress(ConnectionResetError):
            if not self._plain_status:
                await self._write("error", _compact(status))
            elif status["status"] != "Success":
                await self._write("error", str(status["message"]).encode())
            for stream in self._streams.values():
                await stream.close()
        self._connection.close()

    async def _write(self, name: str, payload: bytes) -> None:
        stream = self._streams.get(name)
        if stream is not None and payload:
            await stream.write(payload)


class WebSocketChannels:
    """One WebSocket. From version 5 on the client can close its input."""

    def __init__(self, socket: websockets.Channelled, wanted: Options) -> None:
        self._socket = socket
        self._translated = socket.protocol == TRANSLATED
        self._wanted = wanted
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._reader = asyncio.create_task(self._receive())

    async def read(self) -> bytes:
        if self._ended.is_set() and self._input.empty():
            return b""
        return await self._input.get()

    async def out(self, payload: bytes) -> None:
        if self._wanted.stdout and payload:
            await self._socket.send(_STDOUT, payload)

    async def err(self, payload: bytes) -> None:
        if self._wanted.stderr and payload:
            await self._socket.send(_STDERR, payload)

    async def gone(self) -> None:
        await self._ended.wait()

    async def finish(self, status: Mapping[str, Any]) -> None:
        with contextlib.suppress(ConnectionResetError):
            if self._translated:
                await self._socket.send(_STATUS, _compact(translated(status)))
            elif self._socket.protocol.startswith("v4."):
                await self._socket.send(_STATUS, _compact(status))
            elif status["status"] != "Success":
                await self._socket.send(_STATUS, str(status["message"]).encode())
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()

    async def _receive(self) -> None:
        async for channel, payload in self._socket.messages():
            if channel == _CLOSE and self._translated:
                if payload == bytes((_STDIN,)):
                    self._input.put_nowait(b"")
            elif channel == _STDIN and self._wanted.stdin and payload:
                self._input.put_nowait(payload)
        self._ended.set()
        self._input.put_nowait(b"")


async def of(request: web.Request, wanted: Options) -> Channels | web.Response:
    """The streams of a request, or why there are none. Raises NoStreams."""
    if websockets.is_asked(request):
        new = TRANSLATED in websockets.offered(request)
        socket = await websockets.opened(request, (TRANSLATED,) if new else websockets.SPOKEN)
        if isinstance(socket, web.Response):
            return socket
        carrier = websockets.Channelled(socket)
        # Tells the client that the connection stands.
        lowest = _STDOUT if wanted.stdout else _STDERR if wanted.stderr else _STATUS
        await carrier.send(lowest, b"")
        return WebSocketChannels(carrier, wanted)
    upgraded = upgrading.to_spdy(request, SPOKEN)
    if isinstance(upgraded, web.Response):
        return upgraded
    channels = SpdyChannels(*upgraded, wanted)
    await channels.gather()
    return channels


def ended(command: Sequence[str], code: int) -> Mapping[str, Any]:
    """The status of a command that was run, in containerd's words."""
    if not code:
        return {"status": "Success"}
    told = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {told}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def translated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a kubelet makes of containerd's status for a client that it talks to itself."""
    if status["status"] == "Success":
        return {"metadata": {}, "status": "Success"}
    if status["reason"] == "NonZeroExitCode":
        (cause,) = status["details"]["causes"]
        told = f"command terminated with exit code {cause['message']}"
        message = f"command terminated with non-zero exit code: {told}"
        return {"metadata": {}, **status, "message": message}
    found = failure(status["message"])
    code, details = found["code"], {"causes": [{"message": status["message"]}]}
    head = {name: value for name, value in found.items() if name != "code"}
    return {"metadata": {}, **head, "details": details, "code": code}


def failure(why: str) -> Mapping[str, Any]:
    """The status of one that could not be run."""
    message = f"Internal error occurred: {why}"
    return {"status": "Failure", "message": message, "reason": "InternalError", "code": 500}


def _compact(status: Mapping[str, Any]) -> bytes:
    return json.dumps(status, separators=(",", ":")).encode()
