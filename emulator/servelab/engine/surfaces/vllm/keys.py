"""vLLM's ``--api-key``: whoever asks for a path of the API must have one of the keys."""

import functools
import hmac
from collections.abc import Sequence
from dataclasses import replace

from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.layer import Layer
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


class Guarded(Layer):
    """Lets through who has a key."""

    def __init__(self, inner: Surface, keys: Sequence[str]) -> None:
        super().__init__(inner)
        self._keys = [key.encode() for key in keys]

    def routes(self) -> Sequence[Route]:
        """The same paths; health and metrics are open."""
        return [
            replace(each, handler=functools.partial(self._handle, each.handler))
            if each.path.startswith(GUARDED)
            else each
            for each in super().routes()
        ]

    def not_found(self, request: Request) -> Response:
        """Without a key, nobody learns which paths there are."""
        return super().not_found(request) if self._may(request) else _UNAUTHORIZED

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """The same."""
        may = self._may(request)
        return super().wrong_method(request, allowed) if may else _UNAUTHORIZED

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
