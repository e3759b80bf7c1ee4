"""A request and its way back: all that an engine's surface knows of HTTP."""

import functools
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"
_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})


# Named tuples, as all that is made anew for each request: they take half the time of dataclasses.
class Request(NamedTuple):
    """A request that came whole. ``target`` is as it came; ``path`` is decoded, without query."""

    method: str
    target: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""
    client: str = "-"  # host:port
    parameters: Mapping[str, str] = _NO_PARAMETERS  # from the route's {name} parts

    @property
    def query(self) -> Mapping[str, str]:
        """The query's parameters; of a repeated one the last."""
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def content_type(self) -> str:
        """The header as it came; empty if it did not."""
        return self.headers.get("content-type", "")


class Response(NamedTuple):
    """An answer that is sent whole. ``content_type`` None sends no such header."""

    status: int = 200
    body: bytes = b""
    content_type: str | None = JSON
    headers: tuple[tuple[str, str], ...] = ()


class WantedFault(Exception):
    """Refused as a fault of the server's own, but asked for: nobody has to look into it."""


class Exchange(Protocol):
    """One request's way back: ``respond`` once, or ``begin``, ``write`` … and ``end``.

    All calls return at once. After the client has gone they do nothing.
    """

    @property
    def request(self) -> Request: ...

    def respond(self, response: Response) -> None:
        """Send a whole answer."""

    def begin(self, response: Response) -> None:
        """Send the head of a streamed answer; the response's body is its first part."""

    def write(self, data: bytes) -> None:
        """Send a part of a streamed answer."""

    def end(self) -> None:
        """The streamed answer is complete."""

    def fail(self, error: Exception) -> None:
        """Our own fault: refuse as where a handler raised, or cut what has begun."""

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call back if the client goes before the answer is complete."""

    def later(self, act: Callable[[], None]) -> None:
        """Do this where the engine's state may be touched: at once, or from a thread soon."""


Handler = Callable[[Exchange], None]


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path; ``while_loading`` answers before readiness.

    ``aside``: the handler of a large request may run on another thread, for it touches nothing but
    the request before it answers or has the host generate, or does so by ``Exchange.later``.

    In the path a ``{name}`` part goes up to the next slash, ``{name:path}`` beyond it. A surface
    that listens while it loads answers routes without ``while_loading`` as unready.
    """

    method: str
    path: str
    handler: Handler
    while_loading: Handler | None = None
    aside: bool = False


_PART = re.compile(r"\{(\w+)(:path)?\}")


@functools.cache
def pattern(path: str) -> re.Pattern[str]:
    """What a path that is asked for must be to be a route's; its groups are the parts."""
    found: list[str] = []
    last = 0
    for part in _PART.finditer(path):
        found.append(re.escape(path[last : part.start()]))
        found.append(f"(?P<{part[1]}>{'.*' if part[2] else '[^/]+'})")
        last = part.end()
    return re.compile("".join(found) + re.escape(path[last:]))


def fits(path: str, asked: str) -> bool:
    """Whether a path that was asked for is a route's."""
    return pattern(path).fullmatch(asked) is not None
