"""A surface before another one, which passes on what it does not answer itself."""

from collections.abc import Sequence

from servelab.engine.exchange import Request, Response, Route
from servelab.engine.surfaces.surface import Surface


class Layer:
    """A Surface that answers as ``inner`` does; subclasses say where not."""

    def __init__(self, inner: Surface) -> None:
        self._inner = inner

    @property
    def server(self) -> str | None:
        """The header Server, if it sends one."""
        return self._inner.server

    @property
    def vary(self) -> str | None:
        """Its own application has no such header."""
        return None

    def routes(self) -> Sequence[Route]:
        """The same paths."""
        return self._inner.routes()

    def not_found(self, request: Request) -> Response:
        """The inner one's answer."""
        return self._inner.not_found(request)

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """The inner one's answer."""
        return self._inner.wrong_method(request, allowed)

    def refused(self, request: Request, error: Exception) -> Response:
        """The inner one's answer."""
        return self._inner.refused(request, error)

    def unready(self, request: Request) -> Response:
        """The inner one's answer."""
        return self._inner.unready(request)
