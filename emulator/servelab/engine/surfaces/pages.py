"""The pages that FastAPI has of itself: what there is to ask for, for people and as OpenAPI.

The HTML is FastAPI's (MIT).
"""

from collections.abc import Callable, Sequence
from importlib import resources

from servelab.engine.exchange import Exchange, Handler, Response, Route

_HTML = {
    "/docs": "swagger-ui.html",
    "/docs/oauth2-redirect": "oauth2-redirect.html",
    "/redoc": "redoc.html",
}
DOCUMENT = "/openapi.json"
# In the order in which they are named to who comes with another one.
_METHODS = ("HEAD", "GET")


def routes(document: Callable[[], bytes]) -> Sequence[Route]:
    """The routes of the pages, and of the document that they show, as JSON."""
    handlers: dict[str, Handler] = {path: _page(file) for path, file in _HTML.items()}
    handlers[DOCUMENT] = lambda exchange: exchange.respond(Response(body=document()))
    return [
        Route(method, path, handler) for path, handler in handlers.items() for method in _METHODS
    ]


def _page(file: str) -> Handler:
    def show(exchange: Exchange) -> None:
        html = resources.files(__package__).joinpath("data", file).read_bytes()
        exchange.respond(Response(200, html, "text/html; charset=utf-8"))

    return show
