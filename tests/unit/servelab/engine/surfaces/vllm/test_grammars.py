"""Patterns, schemas and structural tags that cannot be used."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces.vllm import grammars, tags


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)",
        "[",
        "*a",
        "a{3,2}",
        "a{",
        "(?=a)",
        "(?<!a)b",
        r"(a)\1",
        r"\bword",
        "[z-a]",
        "(?#c)a",
    ],
)
def test_a_pattern_that_cannot_be_read_is_faulty(pattern: str) -> None:
    assert grammars.pattern_fault(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[a-z]+$",
        r"\d{3}-\d{4}",
        r"(?P<year>\d+)",
        "(?i)abc",
        "a|",
        r"\p{L}+",
        r"[\]a-]",
        "[[:alpha:]]",
    ],
)
def test_a_sound_pattern_has_no_fault(pattern: str) -> None:
    assert grammars.pattern_fault(pattern) is None


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
def test_a_schema_that_nothing_can_meet_is_faulty(schema: Any) -> None:
    assert grammars.schema_fault(schema)


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
        {"allOf": [{"type": "number"}, {"type": "integer"}]},
    ],
    ids=str,
)
def test_a_schema_may_hold_what_nobody_reads(schema: Any) -> None:
    assert grammars.schema_fault(schema) is None


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"properties": {"next": {"$ref": "#"}, "leaf": {"$ref": "#/$defs/a~1b"}}}
    assert grammars.schema_fault(tree | {"$defs": {"a/b": {"type": ["string", "null"]}}}) is None


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
    for judge in (grammars.schema_fault, tags.fault):
        assert judge(document) != ""


@given(st.text(alphabet="ab[]{}()?*+|\\^$-,19:", max_size=12))
def test_any_pattern_is_judged(pattern: str) -> None:
    assert grammars.pattern_fault(pattern) != ""
