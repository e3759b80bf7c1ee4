"""Chunked transfer coding taken off a body (RFC 9112, section 7.1), a piece at a time."""


class ChunkedBody:
    """Feed it what arrives; it returns what of that is content, and knows the end."""

    __slots__ = ("_last", "_left_bytes", "_rest", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._left_bytes = 0
        self._rest = b""
        self._last = False

    def feed(self, data: bytes) -> bytes:
        """The content in the next bytes of the connection. Raises ValueError for a broken frame."""
        data, self._rest = self._rest + data, b""
        parts: list[bytes] = []
        at = 0
        while at < len(data) and not self.ended:
            if self._left_bytes:
                piece = data[at : at + self._left_bytes]
                parts.append(piece)
                self._left_bytes -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._rest = data[at:]
                break
            self._take_line(data[at:end])
            at = end + 2
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _take_line(self, line: bytes) -> None:
        """A chunk's size, the empty end of one, or a trailer."""
        if self._last:
            self.ended = not line
        elif line:
            self._left_bytes = int(line.partition(b";")[0], 16)
            self._last = self._left_bytes == 0
