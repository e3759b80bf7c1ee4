"""Port-forward over the older kind of WebSocket: two channels for each port that a request names.

Both begin with the port's number, two bytes, the lower first.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from modelserve import errors
from servelab.node.serving import websockets

SPOKEN = (f"v4.{websockets.BINARY}", f"v4.{websockets.BASE64}", "")


class Channel:
    """One of the two channels of a port; nobody can close one alone."""

    def __init__(self, socket: websockets.Channelled, number: int) -> None:
        self._socket = socket
        self._number = number
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self.broken = False

    def take(self, chunk: bytes) -> None:
        """Bytes have come; none at all mean that the client is gone."""
        self.broken = self.broken or not chunk
        self._chunks.put_nowait(chunk)

    async def read(self) -> bytes:
        return await self._chunks.get()

    async def write(self, payload: bytes) -> None:
        await self._socket.send(self._number, payload)

    async def close(self) -> None:
        pass

    async def reset(self) -> None:
        pass


async def carry(
    socket: websockets.Channelled,
    wanted: Sequence[int],
    forward: Callable[[int, Channel, Channel], Awaitable[None]],
) -> None:
    """Forward to these ports, each with its channels of data and errors, until all have ended."""
    channels = [Channel(socket, number) for number in range(2 * len(wanted))]
    pairs = list(zip(wanted, channels[::2], channels[1::2], strict=True))
    for port, *pair in pairs:
        for each in pair:
            await each.write(port.to_bytes(2, "little"))

    async def receive() -> None:
        async for number, payload in socket.messages():
            if payload and number in range(0, len(channels), 2):
                channels[number].take(payload)
        for each in channels:
            each.take(b"")

    receiving = asyncio.create_task(receive())
    try:
        await asyncio.gather(*(forward(*pair) for pair in pairs))
    finally:
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)


def ports(told: Iterable[str]) -> list[int]:
    """The ports that an older WebSocket's request names. Raises InputError in a kubelet's words."""
    found = []
    for text in told:
        if not text:
            raise errors.InputError('query parameter "port" cannot be empty')
        for each in text.split(","):
            if not each.isdecimal() or int(each) > 65_535:
                why = "value out of range" if each.isdecimal() else "invalid syntax"
                raise errors.InputError(
                    f'unable to parse "{text}" as a port: '
                    f'strconv.ParseUint: parsing "{each}": {why}'
                )
            if int(each) < 1:
                raise errors.InputError(f'port "{text}" must be > 0')
            found.append(int(each))
    if not found:
        raise errors.InputError('query parameter "port" is required')
    return found
