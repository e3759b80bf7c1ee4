"""Patterns, schemas and structural tags that cannot be used."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces.vllm import grammars


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
        {"required": "a"},
        {"enum": []},
        {"anyOf": {}},
        {"$ref": "#/$defs/none"},
        {"items": 5},
        {"minimum": 5, "maximum": 3},
        {"minLength": -1},
        {"multipleOf": 0},
        {"format": "zzz"},
        {"uniqueItems": True},
        {"properties": {"a": False}, "required": ["a"]},
        {"pattern": "("},
        5,
    ],
    ids=str,
)
def test_a_schema_that_nothing_can_meet_is_faulty(schema: Any) -> None:
    assert grammars.schema_fault(schema)


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
    for judge in (grammars.schema_fault, grammars.tag_fault):
        assert judge(document) != ""


@given(st.text(alphabet="ab[]{}()?*+|\\^$-,19:", max_size=12))
def test_any_pattern_is_judged(pattern: str) -> None:
    assert grammars.pattern_fault(pattern) != ""
