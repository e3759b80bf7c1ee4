"""From bytes to whole requests: httptools' callbacks, with the bounds it does not have."""

import logging
import urllib.parse
from collections.abc import Mapping
from typing import Protocol

import httptools

from modelserve.errors import InputError
from servelab.engine.exchange import Request
from servelab.engine.httpd.limits import Limits

LOGGER = logging.getLogger(__name__)
# What the parser of URLs can count.
MOST_TARGET_BYTES = 65_535
_MOST_CACHED = 512
_LONGEST_CACHED = 64

_NO_PARAMETERS: Mapping[str, str] = {}
# Names and targets are few and come again and again.
_names: dict[bytes, str] = {}
_targets: dict[bytes, tuple[str, str]] = {}


class BadRequest(InputError):
    """The bytes are no HTTP request, or one beyond the bounds of a head."""


class Sink(Protocol):
    """What is done with what comes; none of this may raise."""

    def head_came(self, length_bytes: int | None, expects: bool) -> None:
        """A head is complete; length None: unknown. ``expects``: the client waits for a 100."""

    def body_came(self, total_bytes: int) -> None:
        """So much of a body that is not small is here."""

    def request_came(self, request: Request, keeps_alive: bool, chunkable: bool) -> None:
        """A request is complete. ``chunkable``: the client knows chunked answers."""


class RequestParser:
    """Reads one connection. After ``end`` it takes nothing more."""

    __deletable__ = ("_parser", "_sink")  # for mypyc, which keeps attributes else

    def __init__(self, sink: Sink, client: str, limits: Limits) -> None:
        self._sink = sink
        self._client = client
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        # As uvicorn: what comes after a request that closes the connection is no error.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._ended = False
        self._stuck_bytes = 0  # without getting anywhere: of a head, or of trailers
        self._url = b""
        self._method = ""
        self._headers: dict[str, str] = {}
        self._count = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._target: tuple[str, str] = ("", "")
        self._version = ""
        self._keeps_alive = False
        self.in_head = False
        self.in_body = False

    def end(self) -> None:
        """Take nothing more; what is half read is dropped."""
        self._ended = True
        self._body = []
        self._body_bytes = 0

    def close(self) -> None:
        """Nothing more comes. It and what it reads with hold each other, until now."""
        self.end()
        del self._parser, self._sink

    def feed(self, data: bytes) -> None:
        """Parse what came. Raises BadRequest; requests before the bad one have been told."""
        self._stuck_bytes += len(data)
        self._feed(data)
        if self._stuck_bytes > self._limits.head_bytes and not self._ended:
            raise BadRequest(f"a head is longer than {self._limits.head_bytes} bytes")

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # No other protocol is spoken here: the request was answered as any other, and what
            # follows is the next one.
            rest = data[upgrade.args[0] :]
            if rest and not self._ended:
                self._feed(rest)
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, BadRequest):
                LOGGER.exception("a request could not be taken")
            raise BadRequest("the request is beyond what is taken") from error
        except httptools.HttpParserError as error:
            if not self._ended:
                raise BadRequest(f"no HTTP request: {error}") from error

    # What httptools calls.

    def on_message_begin(self) -> None:
        self.in_head = True
        self._url = b""
        self._headers = {}
        self._count = 0

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        if self._count > self._limits.headers:
            raise BadRequest(f"more than {self._limits.headers} headers")
        if self.in_body:  # a trailer
            self._stuck_bytes = 0
            return
        known = _names.get(name) or _name(name)
        if known not in self._headers:
            self._headers[known] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        parser, headers = self._parser, self._headers
        self._stuck_bytes = 0
        self.in_head, self.in_body = False, True
        self._method = parser.get_method().decode("ascii")
        self._target = _targets.get(self._url) or _target(self._url)
        self._version = parser.get_http_version()
        self._keeps_alive = self._version != "1.0" and parser.should_keep_alive()
        if self._ended:
            return
        length = headers.get("content-length")
        if parser.should_upgrade():
            # The parser takes the head for all of it. A body would be read as the next request.
            self._keeps_alive = self._keeps_alive and length in (None, "0")
        elif length is not None:
            self._head_came(int(length))
        elif "transfer-encoding" in headers:
            self._head_came(None)

    def _head_came(self, length_bytes: int | None) -> None:
        expects = self._headers.get("expect", "").lower() == "100-continue"
        self._sink.head_came(length_bytes, expects)

    def on_body(self, data: bytes) -> None:
        self._stuck_bytes = 0
        if self._ended:
            return
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > self._limits.free_body_bytes:
            self._sink.body_came(self._body_bytes)

    def on_message_complete(self) -> None:
        self._stuck_bytes = 0
        self.in_body = False
        if self._ended:
            return
        parts = self._body
        body = b"" if not parts else parts[0] if len(parts) == 1 else b"".join(parts)
        self._body, self._body_bytes = [], 0
        target, path = self._target
        request = Request(
            self._method, target, path, self._headers, body, self._client, _NO_PARAMETERS
        )
        self._sink.request_came(request, self._keeps_alive, self._version != "1.0")


def _name(name: bytes) -> str:
    lower = name.decode("latin-1").lower()
    if len(name) <= _LONGEST_CACHED:
        if len(_names) >= _MOST_CACHED:
            _names.clear()
        _names[name] = lower
    return lower


def _target(url: bytes) -> tuple[str, str]:
    """The target as text, and its decoded path. Raises BadRequest."""
    try:
        if len(url) > MOST_TARGET_BYTES:
            raise BadRequest(f"a target is longer than {MOST_TARGET_BYTES} bytes")
        plain = url.startswith(b"/") and b"#" not in url
        raw = url.partition(b"?")[0] if plain else httptools.parse_url(url).path
        if raw is None:
            raise BadRequest("a target has no path")
        path, target = raw.decode("ascii"), url.decode("latin-1")
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError) as error:
        raise BadRequest("a target is no URL") from error
    found = (target, urllib.parse.unquote(path) if "%" in path else path)
    if len(url) <= _LONGEST_CACHED:
        if len(_targets) >= _MOST_CACHED:
            _targets.clear()
        _targets[url] = found
    return found
