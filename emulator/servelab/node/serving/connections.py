"""A connection that carries SPDY streams, and the streams themselves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from servelab.node.serving import spdy

# So much may lie unread before the peer is held back, in bytes of all streams.
MOST_UNREAD_BYTES = 1 << 20


class Carrier(Protocol):
    """What bytes go out on: a transport, or a tunnel."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Stream:
    """One stream that the peer opened."""

    def __init__(self, connection: "Connection", number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        self._connection = connection
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self.broken = False  # the peer has reset it, or is gone
        self._over = False
        self._closed = False

    def unread_bytes(self) -> int:
        """What has come and is not read; it never will be."""
        total = 0
        while not self._chunks.empty():
            total += len(self._chunks.get_nowait())
        self.take(b"")
        return total

    def take(self, chunk: bytes) -> None:
        """Bytes have come; none at all mean that no more will."""
        if not self._over:
            self._over = not chunk
            self._chunks.put_nowait(chunk)

    def cut(self) -> None:
        """The peer wants no more of it."""
        self.broken = True
        self.take(b"")

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        if self._over and self._chunks.empty():
            return b""
        chunk = await self._chunks.get()
        self._connection.consumed(len(chunk))
        return chunk

    async def write(self, payload: bytes) -> None:
        """Send bytes. Raises ConnectionResetError if the connection is gone."""
        if not self._closed:
            await self._connection.send(spdy.data(self.number, payload))

    async def close(self) -> None:
        """Tell that no more will be sent."""
        if not self._closed:
            self._closed = True
            await self._connection.send(spdy.data(self.number, b"", fin=True))

    async def reset(self) -> None:
        """End it at once, both ways."""
        self._closed = True
        self.take(b"")
        await self._connection.send(spdy.reset(self.number))


class Connection(asyncio.Protocol):
    """The peer opens streams on it. It takes the place of HTTP on a transport, or has a tunnel."""

    def __init__(
        self,
        refusal: Callable[[Mapping[str, str]], str],
        before: asyncio.BaseProtocol | None = None,
    ) -> None:
        """``refusal`` says why a stream is not taken; ``before`` hears of the connection's end."""
        self._before = before
        self._refusal = refusal
        self._reader, self._writer = spdy.Reader(), spdy.Writer()
        self._streams: dict[int, Stream] = {}
        self._last = 0
        self._opened: asyncio.Queue[Stream | None] = asyncio.Queue()
        self._writable = asyncio.Event()
        self._writable.set()
        self._unread_bytes = 0
        self._held = False
        self.ended = asyncio.Event()
        self._transport: Carrier | None = None

    def attach(self, carrier: Carrier) -> None:
        """Speak SPDY on it from now on."""
        self._transport = carrier

    async def streams(self) -> AsyncIterator[Stream]:
        """Streams as the peer opens them, until the connection ends."""
        while (stream := await self._opened.get()) is not None:
            yield stream

    async def send(self, frame: bytes) -> None:
        """Send a frame, and wait while the peer is slow. Raises ConnectionResetError."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the peer has gone")
        self._transport.write(frame)
        await self._writable.wait()

    def consumed(self, size: int) -> None:
        """Bytes of a stream were read."""
        self._unread_bytes -= size
        if self._held and self._unread_bytes < MOST_UNREAD_BYTES // 2 and self._transport:
            self._held = False
            self._transport.resume_reading()

    def close(self) -> None:
        """End the connection once all is sent."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(spdy.go_away(self._last))
            self._transport.close()

    def forget(self, stream: Stream) -> None:
        """The stream is of no more interest."""
        self._streams.pop(stream.number, None)
        self.consumed(stream.unread_bytes())

    # What the transport tells.

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except spdy.ProtocolError:
            self.close()
        if not self._held and self._unread_bytes > MOST_UNREAD_BYTES and self._transport:
            self._held = True
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.ended.set()
        self._writable.set()
        for stream in self._streams.values():
            stream.cut()
        # They refer to us: so nobody has to look for what keeps itself alive.
        self._streams.clear()
        self._opened.put_nowait(None)
        before, self._before = self._before, None
        if isinstance(before, asyncio.Protocol):
            before.connection_lost(exc)

    def _take(self, frame: spdy.Frame) -> None:
        assert self._transport is not None
        match frame:
            case spdy.Opened(number, headers, fin):
                self._open(number, headers, fin=fin)
            case spdy.Data(number, payload, fin):
                stream = self._streams.get(number)
                if stream is None:
                    self._transport.write(spdy.reset(number, spdy.Reset.INVALID_STREAM))
                    return
                if payload:
                    self._unread_bytes += len(payload)
                    stream.take(payload)
                if fin:
                    stream.take(b"")
            case spdy.Broken(number):
                if (found := self._streams.pop(number, None)) is not None:
                    found.cut()
            case spdy.Ping(number):
                self._transport.write(spdy.ping(number))
            case spdy.GoAway():
                pass

    def _open(self, number: int, headers: Mapping[str, str], *, fin: bool) -> None:
        assert self._transport is not None
        if number in self._streams or number <= self._last:
            raise spdy.ProtocolError(f"stream {number} was opened before")
        self._last = number
        if self._refusal(headers):
            self._transport.write(spdy.reset(number))
            return
        stream = self._streams[number] = Stream(self, number, headers)
        self._transport.write(self._writer.reply(number))
        if fin:
            stream.take(b"")
        self._opened.put_nowait(stream)
