"""Errors in their forms."""

import json

import pytest

from servelab.engine.surfaces import refusing
from servelab.engine.surfaces.refusing import Shape

FLAT = {"object": "error", "message": "no", "type": "BadRequestError", "param": None, "code": 400}


@pytest.mark.parametrize(
    ("shape", "document"),
    [
        (Shape.FLAT, FLAT),
        (Shape.NESTED, {"error": {"message": "no"}}),
        (Shape.BARE, {"error": "no"}),
    ],
)
def test_an_error_is_told_in_the_form_of_its_route(
    shape: Shape, document: dict[str, object]
) -> None:
    answer = refusing.Refusal("no", shape=shape).response()
    assert (answer.status, json.loads(answer.body)) == (400, document)


def test_a_fault_of_the_server_is_plain_text() -> None:
    answer = refusing.fault().response()
    assert (answer.status, answer.body) == (500, b"Internal Server Error")
    assert answer.content_type == "text/plain; charset=utf-8"
