"""Frames of SPDY/3.1 as far as a kubelet needs them: read from bytes, and written (pure).

The API server opens the streams of exec and port-forward with it. Windows are left alone: neither
side of Kubernetes' own implementation keeps to them, TCP holds back who is too fast.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from modelserve import errors
from servelab.node.serving import dictionary

VERSION = 3
FIN = 1
# A peer that sends more means no good.
MOST_HEADER_BYTES = 1 << 20
MOST_FRAME_BYTES = (1 << 24) - 1


class Kind(IntEnum):
    """Types of control frames."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class Reset(IntEnum):
    """Why a stream is reset."""

    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    CANCEL = 5


class ProtocolError(errors.InputError):
    """The peer does not speak SPDY/3.1 as it should; the connection must end."""


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; ``fin`` if they are its last."""

    stream: int
    payload: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """The peer opens a stream. Header names are in lower case."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer resets a stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    """To be sent back as it is."""

    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The peer opens no more streams."""


Frame = Data | Opened | Broken | Ping | GoAway


class Reader:
    """Takes bytes as they come and gives the frames that are whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._inflate = zlib.decompressobj(zdict=dictionary.HEADERS)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Frames completed by ``data``. Raises ProtocolError."""
        self._bytes += data
        while len(self._bytes) >= 8:
            first, second = struct.unpack_from(">II", self._bytes)
            size = second & MOST_FRAME_BYTES
            if len(self._bytes) < 8 + size:
                return
            payload = bytes(self._bytes[8 : 8 + size])
            del self._bytes[: 8 + size]
            flags = second >> 24
            if first >> 31:
                frame = self._control(first, flags, payload)
                if frame is not None:
                    yield frame
            else:
                yield Data(first, payload, bool(flags & FIN))

    def _control(self, first: int, flags: int, payload: bytes) -> Frame | None:
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != VERSION:
            raise ProtocolError(f"SPDY version {version} is not spoken here, only {VERSION}")
        try:
            return self._parse(kind, flags, payload)
        except (struct.error, zlib.error) as error:
            raise ProtocolError(f"a SPDY frame of type {kind} cannot be read: {error}") from error

    def _parse(self, kind: int, flags: int, payload: bytes) -> Frame | None:
        match kind:
            case Kind.SYN_STREAM:
                (stream,) = struct.unpack_from(">I", payload)
                return Opened(stream & 0x7FFFFFFF, self._headers(payload[10:]), bool(flags & FIN))
            case Kind.SYN_REPLY | Kind.HEADERS:
                # Of no use here, but the compression goes on over all headers.
                self._headers(payload[4:])
                return None
            case Kind.RST_STREAM:
                stream, _ = struct.unpack(">II", payload)
                return Broken(stream & 0x7FFFFFFF)
            case Kind.PING:
                return Ping(*struct.unpack(">I", payload))
            case Kind.GOAWAY:
                return GoAway()
        return None

    def _headers(self, compressed: bytes) -> Mapping[str, str]:
        block = self._inflate.decompress(compressed, MOST_HEADER_BYTES)
        if self._inflate.unconsumed_tail:
            raise ProtocolError(f"SPDY headers are larger than {MOST_HEADER_BYTES} bytes")
        (count,) = struct.unpack_from(">I", block)
        headers, at = {}, 4
        for _ in range(count):
            name, at = _text(block, at)
            headers[name.lower()], at = _text(block, at)
        return headers


class Writer:
    """Makes the bytes of frames; headers are compressed one after the other."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(9, zdict=dictionary.HEADERS)

    def reply(self, stream: int) -> bytes:
        """The stream is accepted."""
        return _control(Kind.SYN_REPLY, struct.pack(">I", stream) + self._headers({}))

    def open(self, stream: int, headers: Mapping[str, str], *, fin: bool = False) -> bytes:
        """Open a stream, as a client does."""
        head = struct.pack(">IIH", stream, 0, 0)
        return _control(Kind.SYN_STREAM, head + self._headers(headers), FIN if fin else 0)

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for pair in headers.items():
            parts += (struct.pack(">I", len(raw)) + raw for raw in (t.encode() for t in pair))
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data(stream: int, payload: bytes, *, fin: bool = False) -> bytes:
    """Bytes of a stream; more than a frame holds go into several."""
    frames = []
    pieces = range(0, len(payload), MOST_FRAME_BYTES) or (0,)
    for start in pieces:
        piece = payload[start : start + MOST_FRAME_BYTES]
        last = start + MOST_FRAME_BYTES >= len(payload)
        flags = FIN if fin and last else 0
        frames.append(struct.pack(">II", stream, flags << 24 | len(piece)) + piece)
    return b"".join(frames)


def reset(stream: int, why: Reset = Reset.CANCEL) -> bytes:
    """End a stream at once, both ways."""
    return _control(Kind.RST_STREAM, struct.pack(">II", stream, why))


def ping(number: int) -> bytes:
    """A ping, or the answer to one."""
    return _control(Kind.PING, struct.pack(">I", number))


def go_away(last_stream: int) -> bytes:
    """No more streams."""
    return _control(Kind.GOAWAY, struct.pack(">II", last_stream, 0))


def _control(kind: Kind, payload: bytes, flags: int = 0) -> bytes:
    head = struct.pack(">II", 1 << 31 | VERSION << 16 | kind, flags << 24 | len(payload))
    return head + payload


def _text(block: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">I", block, at)
    end = at + 4 + size
    if end > len(block):
        raise ProtocolError("a SPDY header is longer than the block that it stands in")
    return block[at + 4 : end].decode("utf-8", "replace"), end
