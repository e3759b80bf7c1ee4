"""The pages that FastAPI has of itself: what there is to ask for, for people and as OpenAPI.

The HTML is FastAPI's (MIT). The document names paths and methods, not what bodies hold.
"""

import re
from collections.abc import Sequence
from importlib import resources

from servelab.engine.exchange import Exchange, Handler, Response, Route
from servelab.engine.surfaces import fastapi

_HTML = {
    "/docs": "swagger-ui.html",
    "/docs/oauth2-redirect": "oauth2-redirect.html",
    "/redoc": "redoc.html",
}
DOCUMENT = "/openapi.json"
# In the order in which they are named to who comes with another one.
_METHODS = ("HEAD", "GET")
_PART = re.compile(r"\{(\w+)(?::path)?\}")


def routes(told: Sequence[Route]) -> Sequence[Route]:
    """The routes of the pages that tell of these."""
    handlers: dict[str, Handler] = {path: _page(file) for path, file in _HTML.items()}
    handlers[DOCUMENT] = lambda exchange: exchange.respond(fastapi.document(document(told)))
    return [
        Route(method, path, handler) for path, handler in handlers.items() for method in _METHODS
    ]


def document(told: Sequence[Route]) -> dict[str, object]:
    """What OpenAPI says of the routes."""
    paths: dict[str, dict[str, object]] = {}
    for route in told:
        path = _PART.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {"openapi": "3.1.0", "info": {"title": "FastAPI", "version": "0.1.0"}, "paths": paths}


def _operation(route: Route) -> dict[str, object]:
    parts = [part[1] for part in _PART.finditer(route.path)]
    told: dict[str, object] = {"responses": {"200": {"description": "Successful Response"}}}
    if parts:
        told["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in parts
        ]
    if route.method != "GET":
        told["requestBody"] = {"content": {"application/json": {"schema": {}}}, "required": True}
    return told


def _page(file: str) -> Handler:
    def show(exchange: Exchange) -> None:
        html = resources.files(__package__).joinpath("data", file).read_bytes()
        exchange.respond(Response(200, html, "text/html; charset=utf-8"))

    return show
