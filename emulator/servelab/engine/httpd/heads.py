"""Heads of answers, built once a second for each kind and spelled as uvicorn spells them.

The answers that the server gives by itself are here too.
"""

import email.utils
import re
from http import HTTPStatus

from servelab.engine.exchange import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
WITHOUT_BODY = frozenset((204, 304))
_TEXT = "text/plain; charset=utf-8"
INVALID = Response(400, b"Invalid HTTP request received.", _TEXT)
TOO_LARGE = Response(413, b"Content Too Large", _TEXT)
FAULT = Response(500, b"Internal Server Error", _TEXT)
_MOST_KINDS = 512
_BAD_NAME = re.compile(r"[^!#$%&'*+\-.^_`|~0-9A-Za-z]|^$")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

Kind = tuple[int, str | None, tuple[tuple[str, str], ...], bool]


class Heads:
    """``server`` and ``vary`` are the headers of these names; None for none."""

    def __init__(self, server: str | None, vary: str | None = None) -> None:
        self._server = f"server: {server}\r\n" if server is not None else ""
        self._vary = f"vary: {vary}\r\n" if vary is not None else ""
        self._date = ""
        self._whole: dict[Kind, tuple[bytes, bytes]] = {}
        self._stream: dict[tuple[Kind, bool], bytes] = {}
        self.set_date()

    def set_date(self, now_unix_s: float | None = None) -> None:
        """Tell this time from now on; None: the system's."""
        self._date = f"date: {email.utils.formatdate(now_unix_s, usegmt=True)}\r\n"
        self._whole.clear()
        self._stream.clear()

    def whole(self, response: Response, *, closes: bool) -> tuple[bytes, bytes]:
        """The head of a whole answer, before and after the length. Raises ValueError."""
        kind = (response.status, response.content_type, response.headers, closes)
        found = self._whole.get(kind)
        if found is None:
            if len(self._whole) >= _MOST_KINDS:
                self._whole.clear()
            # Starlette puts the length after what the application set, and the type last.
            before = self._start(response) + "content-length: "
            after = "\r\n" + self._last(response) + _end(closes=closes)
            found = self._whole[kind] = (_encoded(before), _encoded(after))
        return found

    def bare(self, response: Response, *, closes: bool) -> bytes:
        """The head of an answer that has no length. Raises ValueError."""
        return _encoded(self._start(response) + self._last(response) + _end(closes=closes))

    def refusal(self, response: Response) -> bytes:
        """A whole answer that closes, in uvicorn's own order."""
        length = f"content-length: {len(response.body)}\r\n"
        head = self._start(response) + _content_type(response) + length + _end(closes=True)
        return _encoded(head) + response.body

    def stream(self, response: Response, *, closes: bool, chunked: bool) -> bytes:
        """The head of a streamed answer. Raises ValueError."""
        kind = (response.status, response.content_type, response.headers, closes), chunked
        found = self._stream.get(kind)
        if found is None:
            if len(self._stream) >= _MOST_KINDS:
                self._stream.clear()
            end = ("connection: close\r\n" if closes else "") + (
                "transfer-encoding: chunked\r\n" if chunked else ""
            )
            head = self._start(response) + self._last(response) + end + "\r\n"
            found = self._stream[kind] = _encoded(head)
        return found

    def _last(self, response: Response) -> str:
        """What stands after the headers that the application set, if it did not set it itself."""
        sets = any(name.lower() == "vary" for name, _ in response.headers)
        return _content_type(response) + ("" if sets else self._vary)

    def _start(self, response: Response) -> str:
        lines = [f"HTTP/1.1 {response.status} {_phrase(response.status)}\r\n"]
        lines += [self._date, self._server]
        for name, value in response.headers:
            if _BAD_NAME.search(name) or _BAD_VALUE.search(value):
                raise ValueError(f"a header {name!r} cannot hold {value!r}")
            lines.append(f"{name.lower()}: {value}\r\n")
        return "".join(lines)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _content_type(response: Response) -> str:
    kind = response.content_type
    return f"content-type: {kind}\r\n" if kind is not None else ""


def _end(*, closes: bool) -> str:
    return "connection: close\r\n\r\n" if closes else "\r\n"


def _encoded(text: str) -> bytes:
    return text.encode("latin-1", "replace")
