"""JSON schemas as xgrammar reads them, and llguidance where it cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces.vllm import backends, llguidance, refusals, tags, xgrammar


def judged(schema: Any) -> str:
    """Who takes a schema; nobody, or who takes it and finds no way to begin."""
    try:
        backend = backends.of_schema(schema)
    except refusals.Refusal:
        return "nobody"
    stuck = backend == backends.XGRAMMAR and not xgrammar.begins(schema)
    return "stuck" if stuck else backend


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": 5},
        {"properties": {"a": {"type": "strin"}}},
        {"properties": [1]},
        {"allOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "object", "maxProperties": 0, "required": ["a"]},
        {"type": "integer", "minimum": 1.5, "maximum": 1.7},
        {"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "strin"}}},
        {"$ref": 5},
        {"type": "number", "multipleOf": "x"},
        {"enum": []},
        {"anyOf": {}},
        {"$ref": "#/$defs/none"},
        {"items": 5},
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"type": "string", "minLength": -1},
        {"type": "number", "multipleOf": 0},
        {"type": "string", "format": "zzz"},
        {"type": "string", "pattern": 5},
        {"type": "array", "uniqueItems": False},
        {"anyOf": [{"type": "array", "contains": {}}]},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "required": "a"},
        {"type": "string", "pattern": "("},
        5,
    ],
    ids=str,
)
def test_a_schema_that_nothing_can_meet_is_for_nobody(schema: Any) -> None:
    assert judged(schema) == "nobody"


# As xgrammar takes them, which does not look so closely.
@pytest.mark.parametrize(
    "schema",
    [
        {"definitions": {"a": {"type": "strin"}}},
        {"$defs": 5},
        {"type": "integer", "format": "int32"},
        {"type": "string", "maxLength": -1},
        {"type": "array", "minItems": -1},
        {"required": "a"},
        {"minLength": 5, "maxLength": -1},
        {"type": "string", "minimum": 5, "maximum": 3, "items": 5},
        {"not": {"type": "strin"}},
        {"patternProperties": {"a": 5}},
        {"additionalProperties": {"uniqueItems": True}},
    ],
    ids=str,
)
def test_a_schema_may_hold_what_nobody_reads(schema: Any) -> None:
    assert judged(schema) == backends.XGRAMMAR


A, B = {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}


# As the real engine answered them, xgrammar being its backend.
@pytest.mark.parametrize(
    ("schema", "who"),
    [
        ({"$ref": "#"}, "stuck"),
        ({"$ref": "#/"}, "stuck"),
        ({"const": 1, "$ref": "#"}, "stuck"),
        ({"type": "foo", "$ref": "#"}, "stuck"),
        ({"anyOf": [{"$ref": "#"}]}, "stuck"),
        (A | {"$defs": {"a": A}}, "stuck"),
        (A | {"$defs": {"a": B, "b": A}}, "stuck"),
        (A | {"$defs": {"a": {"allOf": [A]}}}, "stuck"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "xgrammar"),
        (A | {"$defs": {"a": {"anyOf": [B, {"type": "null"}]}, "b": A}}, "xgrammar"),
        ({"type": "object", "properties": {"x": A}, "$defs": {"a": A}}, "xgrammar"),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "xgrammar"),
        (A | {"$defs": {"a": {"type": "object", "properties": {"next": A}}}}, "xgrammar"),
        ({"$ref": "#/$defs//a", "$defs": {"a": {}}}, "xgrammar"),
        ({"$ref": "other.json", "type": "foo"}, "xgrammar"),
        ({"type": "object", "properties": {"x": False}}, "guidance"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}}, "guidance"),
        ({"$ref": "#/anyOf/0", "anyOf": [{"type": "null"}]}, "guidance"),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "guidance"),
        ({"type": "array", "minItems": 1}, "guidance"),
        ({"type": "integer", "maximum": 2.5}, "guidance"),
        ({"$ref": "#/nope"}, "nobody"),
        ({"type": "string", "$ref": "#/nope"}, "nobody"),
        ({"$ref": "#", "type": "integer", "multipleOf": 2}, "nobody"),
        ({"allOf": [{"$ref": "#"}, {"type": "object"}]}, "nobody"),
        ({"type": "integer", "multipleOf": 2, "$defs": {"a": {"$ref": "other"}}}, "nobody"),
        ({"type": "number", "minimum": True}, "nobody"),
        ({"type": "object", "propertyNames": {}, "properties": {"a": {}}}, "nobody"),
    ],
    ids=str,
)
def test_schemas_are_for_whom_the_real_engine_gives_them_to(schema: Any, who: str) -> None:
    assert judged(schema) == who


def test_references_are_followed_however_many() -> None:
    chain: dict[str, Any] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(100)}
    ends = {"$ref": "#/$defs/a0", "$defs": chain | {"a100": {"type": "null"}}}
    circles = {"$ref": "#/$defs/a0", "$defs": chain | {"a100": {"$ref": "#/$defs/a50"}}}
    assert (judged(ends), judged(circles)) == (backends.XGRAMMAR, "stuck")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "items", "enum", "required", "$ref", "anyOf", "minimum", "format"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_document_is_judged(document: Any) -> None:
    for judge in (xgrammar.fault, llguidance.fault, tags.fault):
        assert judge(document) != ""
    assert judged(document)
