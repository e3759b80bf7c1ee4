"""Who constrains an answer, and that it stays that one."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.surfaces.vllm import backends

EVEN = {"type": "integer", "multipleOf": 2}


@pytest.mark.parametrize(
    "schema",
    [
        EVEN,
        {"properties": {"a": EVEN}},
        {"type": "string", "pattern": "a", "minLength": 3},
        {"type": "object", "minProperties": 2},
        {"allOf": [{"type": "object"}, {"properties": {}}]},
        {"items": []},
        {"properties": {"a": False}},
        {"type": "integer", "exclusiveMinimum": True},
    ],
    ids=str,
)
def test_what_xgrammar_cannot_do_is_for_guidance(schema: Any) -> None:
    assert backends.of_schema(schema) == backends.GUIDANCE


@pytest.mark.parametrize("patterns", [5, {"a": 5}, {"a": {}, "b": {}}], ids=str)
def test_patterns_of_names_that_it_cannot_do_are_for_outlines(patterns: Any) -> None:
    schema = {"type": "object", "patternProperties": patterns}
    assert backends.of_schema(schema) == backends.OUTLINES


@pytest.mark.parametrize("schema", [{}, True, {"type": "object"}, {"multipleOf": 2}], ids=str)
def test_the_rest_is_xgrammars(schema: Any) -> None:
    assert backends.of_schema(schema) == backends.XGRAMMAR


def chat(schema: Any, **fields: Any) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    return {"messages": [{"role": "user", "content": "hi"}], "response_format": form} | fields


@pytest.mark.parametrize(("first", "then"), [({}, EVEN), (EVEN, {})])
def test_an_engine_keeps_to_the_backend_that_it_began_with(
    hosted: Callable[..., Any], first: Any, then: Any
) -> None:
    host = hosted(EngineType.VLLM)
    assert host.ask("POST", "/v1/chat/completions", chat(first)).status == 0
    assert host.ask("POST", "/v1/chat/completions", chat(first)).status == 0
    assert host.ask("POST", "/v1/chat/completions", chat(then)).status == 400


def test_a_stream_is_refused_once_it_is_open(hosted: Callable[..., Any]) -> None:
    host = hosted(EngineType.VLLM)
    host.ask("POST", "/v1/chat/completions", chat({}))
    refused = host.ask("POST", "/v1/chat/completions", chat(EVEN, stream=True))
    assert (refused.status, refused.events[0]["error"]["code"]) == (200, 400)
