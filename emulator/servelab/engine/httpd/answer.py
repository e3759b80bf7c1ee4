"""The way back of one request: an Exchange over a connection."""

from collections.abc import Callable
from typing import Protocol

from servelab.engine.exchange import Request, Response
from servelab.engine.httpd.heads import WITHOUT_BODY, Heads

# Larger bodies are dropped once a handler has seen them: a stream may last for hours.
KEPT_BODY_BYTES = 16 * 1024
LAST_CHUNK = b"0\r\n\r\n"


class Line(Protocol):
    """The connection an answer goes out on."""

    @property
    def heads(self) -> Heads: ...
    @property
    def retiring(self) -> bool:
        """Whether it closes after this answer."""
        ...

    def send(self, data: bytes) -> None:
        """Write, if the client is still there."""

    def told(self, request: Request, status: int) -> None:
        """An answer has begun."""

    def answered(self, *, closes: bool) -> None:
        """The answer is complete."""

    def cut(self) -> None:
        """Close at once."""

    def refuse(self, answer: "Answer", error: Exception) -> None:
        """Have the site refuse what failed before it began."""

    def later(self, callback: Callable[[], None]) -> None:
        """Call back in the loop's next turn."""


class Answer:
    """One request's Exchange. Without a line it is over, or the client has gone.

    ``chunkable``: the client knows chunked answers.
    """

    __slots__ = (
        "_chunkable",
        "_chunked",
        "_closes",
        "_gone",
        "_keeps_alive",
        "_line",
        "_on_gone",
        "_silent",
        "begun",
        "digesting",
        "request",
        "reserved_bytes",
    )

    def __init__(self, line: Line, request: Request, keeps_alive: bool, chunkable: bool) -> None:
        self.request = request
        self.begun = False
        self.digesting = False  # a handler reads the request on another thread
        self.reserved_bytes = 0  # of the budget for bodies, until it has
        self._keeps_alive = keeps_alive
        self._chunkable = chunkable
        self._line: Line | None = line
        self._chunked = False
        self._closes = False
        self._silent = False  # a body is not sent: HEAD, or a status that has none
        self._gone: Line | None = None  # the line that was lost
        self._on_gone: list[Callable[[], None]] = []

    @property
    def open(self) -> bool:
        """Whether it is neither complete nor cut."""
        return self._line is not None

    def respond(self, response: Response) -> None:
        """Send a whole answer. Raises ValueError for a header that cannot be sent."""
        line = self._line
        if line is None or self.begun:
            return
        closes = line.retiring or not self._keeps_alive
        body = response.body
        if response.status in WITHOUT_BODY:
            data = line.heads.bare(response, closes=closes)
        else:
            before, after = line.heads.whole(response, closes=closes)
            if self.request.method == "HEAD":
                data = b"%b%d%b" % (before, len(body), after)
            else:
                data = b"%b%d%b%b" % (before, len(body), after, body)
        self._line = None
        line.send(data)
        line.answered(closes=closes)
        line.told(self.request, response.status)

    def begin(self, response: Response) -> None:
        """Send the head of a stream. Raises ValueError for a header that cannot be sent."""
        line = self._line
        if line is None or self.begun:
            return
        chunkable = self._chunkable
        closes = line.retiring or not self._keeps_alive or not chunkable
        self._silent = self.request.method == "HEAD" or response.status in WITHOUT_BODY
        self._chunked = chunkable and not self._silent
        head = line.heads.stream(response, closes=closes, chunked=self._chunked)
        self._closes = closes
        self.begun = True
        line.send(head + self._framed(response.body))
        line.told(self.request, response.status)

    def write(self, data: bytes) -> None:
        """Send a part of a stream."""
        line = self._line
        if line is None or not data or self._silent or not self.begun:
            return
        line.send(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self) -> None:
        """The stream is complete."""
        line, self._line = self._line, None
        if line is None:
            return
        if self._chunked:
            line.send(LAST_CHUNK)
        line.answered(closes=self._closes or line.retiring)

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call back if the client goes before the end; soon, if it has gone already."""
        if self._gone is not None:
            self._gone.later(callback)
        elif self._line is not None:
            self._on_gone.append(callback)

    def later(self, act: Callable[[], None]) -> None:
        """Do it at once: this is the loop's thread."""
        act()

    def cut(self) -> None:
        """The client is gone: say so in the loop's next turn."""
        line, self._line = self._line, None
        if line is not None:
            self._gone = line
            line.later(self._tell)

    def fail(self, error: Exception) -> None:
        """Refuse, or cut the connection: what has begun cannot be completed."""
        line = self._line
        if line is None:
            return
        if self.begun:
            line.cut()
        else:
            line.refuse(self, error)

    def forget_body(self) -> None:
        """Drop a large body."""
        if len(self.request.body) > KEPT_BODY_BYTES:
            self.request = self.request._replace(body=b"")

    def _framed(self, data: bytes) -> bytes:
        if not data or self._silent:
            return b""
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def _tell(self) -> None:
        callbacks, self._on_gone = self._on_gone, []
        for callback in callbacks:
            callback()
