"""Which route a request takes."""

import pytest

from servelab.engine.exchange import Exchange, Route
from servelab.engine.httpd.routing import Router


def _answer(exchange: Exchange) -> None:
    """Never called here."""


def router(*paths: str) -> Router:
    return Router([Route(method, path, _answer) for method, _, path in map(_split, paths)])


def _split(route: str) -> tuple[str, str, str]:
    return route.partition(" ")


MODELS = router(
    "GET /v1/models",
    "GET /v2/models/{name}",
    "POST /v2/models/{name}/infer",
    "GET /v2/models/{name}/versions/{version}",
    "GET /v2/models/special",
    "GET /files/{path:path}",
    "GET /a.b",
)


@pytest.mark.parametrize(
    ("path", "route", "parameters"),
    [
        ("/v1/models", "/v1/models", {}),
        ("/v2/models/m", "/v2/models/{name}", {"name": "m"}),
        (
            "/v2/models/m/versions/3",
            "/v2/models/{name}/versions/{version}",
            {"name": "m", "version": "3"},
        ),
        ("/v2/models/special", "/v2/models/{name}", {"name": "special"}),
        ("/files/a/b", "/files/{path:path}", {"path": "a/b"}),
    ],
)
def test_the_first_route_that_matches_is_taken(
    path: str, route: str, parameters: dict[str, str]
) -> None:
    match = MODELS.find("GET", path)
    assert match.route is not None
    assert match.route.path == route
    assert match.parameters == parameters


@pytest.mark.parametrize(
    "path", ["/v1/model", "/v1/models/", "/v2/models/", "/axb", "/v2/models/m/"]
)
def test_what_is_no_route_has_no_methods(path: str) -> None:
    match = MODELS.find("GET", path)
    assert (match.route, match.allowed) == (None, ())


def test_a_known_path_tells_its_methods_in_the_routes_order() -> None:
    match = router("GET /ping", "POST /ping").find("PUT", "/ping")
    assert (match.route, match.allowed) == (None, ("GET", "POST"))
