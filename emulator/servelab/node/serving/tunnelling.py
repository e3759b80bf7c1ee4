"""SPDY through a WebSocket: each message is a piece of the bytes that SPDY would send by itself."""

import asyncio
import contextlib
from collections.abc import Sequence

from aiohttp import WSMsgType, web

from servelab.node.serving import connections, websockets

PREFIX = "SPDY/3.1+"
_SUFFIX = ".k8s.io"
# So much may wait to be sent before those who write are held back.
MOST_UNSENT_BYTES = 1 << 20


def protocols(request: web.Request) -> Sequence[str]:
    """SPDY's protocols that the client wants to speak in the tunnel; none: it wants no tunnel."""
    return [
        each.removeprefix(PREFIX)
        for each in websockets.offered(request)
        if each.startswith(PREFIX) and each.endswith(_SUFFIX)
    ]


class Tunnel:
    """Carries a connection, as a transport would."""

    def __init__(self, socket: web.WebSocketResponse, connection: connections.Connection) -> None:
        self._socket = socket
        self._connection = connection
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unsent_bytes = 0
        self._held_back = False
        self._closing = False
        self._readable = asyncio.Event()
        self._readable.set()

    async def run(self) -> None:
        """Until either side has gone."""
        self._connection.attach(self)
        sending = asyncio.create_task(self._send())
        try:
            await self._receive()
        finally:
            self._closing = True
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            self._connection.connection_lost(None)

    # As a transport.

    def write(self, data: bytes) -> None:
        """Send it soon."""
        if self._closing:
            return
        self._unsent.put_nowait(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > MOST_UNSENT_BYTES and not self._held_back:
            self._held_back = True
            self._connection.pause_writing()

    def is_closing(self) -> bool:
        """Whether it takes nothing more."""
        return self._closing

    def close(self) -> None:
        """End it once all is sent."""
        if not self._closing:
            self._closing = True
            self._unsent.put_nowait(None)

    def pause_reading(self) -> None:
        """Take nothing more for now; the client is held back."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """Go on."""
        self._readable.set()

    async def _receive(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                self._connection.data_received(bytes(message.data))
            await self._readable.wait()

    async def _send(self) -> None:
        with contextlib.suppress(ConnectionResetError):
            while (data := await self._unsent.get()) is not None:
                await self._socket.send_bytes(data)
                self._unsent_bytes -= len(data)
                if self._held_back and self._unsent_bytes < MOST_UNSENT_BYTES // 2:
                    self._held_back = False
                    self._connection.resume_writing()
        await self._socket.close()
