"""WebSockets as a kubelet and containerd speak them: each message begins with a channel's number.

In binary protocols it is a byte, in those of base64 a digit.
"""

import base64
import binascii
from collections.abc import AsyncIterator, Sequence

from aiohttp import WSMsgType, web

BINARY = "channel.k8s.io"
BASE64 = "base64.channel.k8s.io"
# What containerd takes; without a protocol, messages are binary.
SPOKEN = (f"v4.{BINARY}", f"v4.{BASE64}", BINARY, BASE64, "")
_HEADER = "Sec-WebSocket-Protocol"


def is_asked(request: web.Request) -> bool:
    """Whether a WebSocket is asked for."""
    connection = request.headers.get("Connection", "").lower()
    return "upgrade" in connection and request.headers.get("Upgrade", "").lower() == "websocket"


def offered(request: web.Request) -> list[str]:
    """The protocols that the client speaks, the one it likes best first."""
    values = request.headers.getall(_HEADER, [])
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


async def opened(
    request: web.Request, spoken: Sequence[str]
) -> web.WebSocketResponse | web.Response:
    """The WebSocket, with the first protocol that both sides speak; refused if there is none."""
    chosen = next((each for each in offered(request) or [""] if each in spoken), None)
    if chosen is None:
        return web.Response(status=403, headers={"Connection": "close"})
    socket = web.WebSocketResponse(protocols=(chosen,) if chosen else (), compress=False)
    await socket.prepare(request)
    return socket


class Channelled:
    """One WebSocket that carries several channels."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._ended = False

    @property
    def protocol(self) -> str:
        """What was agreed on; empty if nothing was."""
        return self._socket.ws_protocol or ""

    async def send(self, channel: int, payload: bytes) -> None:
        """Raises ConnectionResetError once the client is gone."""
        if self._ended:
            raise ConnectionResetError("the peer has gone")
        if self.protocol.endswith(BASE64):
            await self._socket.send_str(f"{channel}{base64.b64encode(payload).decode()}")
        else:
            await self._socket.send_bytes(bytes((channel,)) + payload)

    async def messages(self) -> AsyncIterator[tuple[int, bytes]]:
        """Channel and payload of what comes, until the client is gone."""
        async for message in self._socket:
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT) or not message.data:
                continue
            text = message.data
            raw = bytes(text) if message.type is WSMsgType.BINARY else str(text).encode()
            if not self.protocol.endswith(BASE64):
                yield raw[0], raw[1:]
                continue
            try:
                yield raw[0] - ord("0"), base64.b64decode(raw[1:], validate=True)
            except binascii.Error:
                continue  # What cannot be read reaches nobody.
        self._ended = True

    async def close(self) -> None:
        """Say that all is over."""
        await self._socket.close()
