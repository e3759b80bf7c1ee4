"""What all servers on FastAPI answer alike."""

import pytest

from servelab.engine.exchange import Exchange, Request, Route
from servelab.engine.surfaces import fastapi


def _handle(exchange: Exchange) -> None:
    """Never asked."""


ROUTES = [Route("GET", "/v1/models/{name}", _handle)]


def asked(target: str) -> Request:
    return Request("GET", target, target.partition("?")[0], {"host": "here:8000"})


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/v1/models/a/", "http://here:8000/v1/models/a"),
        ("/v1/models/a//?b=c", "http://here:8000/v1/models/a?b=c"),
        ("/v1/models/%0D%0Aa/", "http://here:8000/v1/models/%0D%0Aa"),
        ("/v1/models/ä/", "http://here:8000/v1/models/%C3%A4"),
    ],
)
def test_a_slash_too_many_leads_to_the_path_without(target: str, location: str) -> None:
    answer = fastapi.not_found(asked(target), ROUTES)
    assert (answer.status, answer.headers) == (307, (("Location", location),))


@pytest.mark.parametrize("target", ["/", "/v1/models", "/v1/nothing/", "/v1/models/a/b/"])
def test_a_path_without_a_route_is_not_found(target: str) -> None:
    answer = fastapi.not_found(asked(target), ROUTES)
    assert (answer.status, answer.body) == (404, b'{"detail":"Not Found"}')
