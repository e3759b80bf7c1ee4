"""vLLM's ``--api-key``: whoever asks for a path of the API must have one of the keys."""

import functools
import hmac
from collections.abc import Sequence
from dataclasses import replace

from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.surface import Host, Surface
from servelab.engine.surfaces.vllm.surface import VllmSurface

GUARDED = ("/v1", "/v2", "/inference", "/cohere")
_UNAUTHORIZED = fastapi.document({"error": "Unauthorized"}, 401)


def surface(host: Host) -> Surface:
    """vLLM's surface, guarded if its launch has keys."""
    inner = VllmSurface(host)
    keys = dict(host.spec.options).get("api-key", "").split("\n")
    keys = [key for key in keys if key]
    return Guarded(inner, keys) if keys else inner


class Guarded:
    """A Surface before another one, that lets through who has a key."""

    def __init__(self, inner: Surface, keys: Sequence[str]) -> None:
        self._inner = inner
        self._keys = [key.encode() for key in keys]

    @property
    def server(self) -> str | None:
        """The header Server, if it sends one."""
        return self._inner.server

    def routes(self) -> Sequence[Route]:
        """The same paths; health and metrics are open."""
        return [
            replace(each, handler=functools.partial(self._handle, each.handler))
            if each.path.startswith(GUARDED)
            else each
            for each in self._inner.routes()
        ]

    def not_found(self, request: Request) -> Response:
        """Without a key, nobody learns which paths there are."""
        return self._inner.not_found(request) if self._may(request) else _UNAUTHORIZED

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """The same."""
        may = self._may(request)
        return self._inner.wrong_method(request, allowed) if may else _UNAUTHORIZED

    def refused(self, request: Request, error: Exception) -> Response:
        """As without keys."""
        return self._inner.refused(request, error)

    def unready(self, request: Request) -> Response:
        """As without keys."""
        return self._inner.unready(request)

    def _handle(self, handler: Handler, exchange: Exchange) -> None:
        if self._may(exchange.request):
            handler(exchange)
        else:
            exchange.respond(_UNAUTHORIZED)

    def _may(self, request: Request) -> bool:
        if request.method == "OPTIONS" or not request.path.startswith(GUARDED):
            return True
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        given = key.encode("utf-8", "surrogateescape")
        found = [hmac.compare_digest(given, each) for each in self._keys]
        return scheme.lower() == "bearer" and any(found)
