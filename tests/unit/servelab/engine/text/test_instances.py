"""Instances meet their schema: checked by a validator that is not ours."""

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.engine.text import instances

names = st.text('abcdexyz_ü"', min_size=1, max_size=5)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4)


def ranges(low: str, high: str, least: int = 0, most: int = 6) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(st.integers(least, most), st.integers(0, 5))
    return bounds.map(lambda pair: {low: pair[0], high: pair[0] + pair[1]}) | st.just({})


numbers = st.one_of(
    ranges("minimum", "maximum", -20, 20),
    ranges("exclusiveMinimum", "maximum", -20, 20).map(
        lambda bounds: {name: value + (name == "maximum") for name, value in bounds.items()}
    ),
    st.integers(-50, 50).map(lambda least: {"exclusiveMinimum": least}),
    st.integers(-50, 50).map(lambda most: {"exclusiveMaximum": most}),
    st.integers(1, 12).map(lambda step: {"multipleOf": step}),
)
leaves = st.one_of(
    st.just({"type": "null"}),
    st.just({"type": "boolean"}),
    numbers.map(lambda bounds: {"type": "integer"} | bounds),
    numbers.map(lambda bounds: {"type": "number"} | bounds),
    ranges("minLength", "maxLength", 0, 40).map(lambda bounds: {"type": "string"} | bounds),
    st.sampled_from(["^a+$", r"^\d{3}-[A-Z]{2,4}$", "(foo|ba[rz])+", r"^[^\s@]+@x\.org$"]).map(
        lambda pattern: {"type": "string", "pattern": pattern}
    ),
    st.lists(scalars, min_size=1, max_size=4).map(lambda values: {"enum": values}),
    scalars.map(lambda value: {"const": value}),
    st.just({"$ref": "#/$defs/shared"}),
    st.just({"type": ["string", "null"]}),
    st.just(True),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(names, inner, max_size=4)
    return st.one_of(
        properties.flatmap(objects),
        st.builds(
            lambda items, bounds: {"type": "array", "items": items} | bounds,
            inner,
            ranges("minItems", "maxItems", 0, 4),
        ),
        st.builds(
            lambda heads, rest: {"type": "array", "prefixItems": heads, "items": rest},
            st.lists(inner, min_size=1, max_size=3),
            inner | st.just(False),
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        st.builds(lambda one, other: {"allOf": [one, other]}, *(properties.flatmap(objects),) * 2),
    )


def objects(properties: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    base = {"type": "object", "properties": properties}
    required = st.lists(st.sampled_from(sorted(properties) or ["a"]), unique=True)
    return st.builds(
        lambda needed, closed: (
            base
            | {"required": [name for name in needed if name in properties]}
            | ({"minProperties": 5} if closed is None else {})
        ),
        required,
        st.booleans() | st.none(),
    )


schemas = st.recursive(leaves, nested, max_leaves=12)


def checked(schema: Any, seed: int) -> Any:
    whole = {"$defs": {"shared": {"type": "integer"}}, "allOf": [schema]}
    made = instances.instance(whole, random.Random(seed))
    jsonschema.Draft202012Validator(whole).validate(made)
    return made


def satisfiable(schema: Any) -> bool:
    """allOf of objects may ask for one name with two types: those have no instance."""
    return "allOf" not in str(schema)


@given(schemas.filter(satisfiable), st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_an_instance_meets_its_schema(schema: Any, seed: int) -> None:
    checked(schema, seed)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
        {"type": "array", "contains": {"const": 7}, "minContains": 2, "items": {"type": "integer"}},
        {"type": "object", "patternProperties": {"^k[0-9]$": {"type": "null"}}}
        | {"additionalProperties": False, "minProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^[A-Z]{3}$"}, "minProperties": 2},
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
        {"properties": {"a": {"type": "integer"}}, "dependentRequired": {"a": ["b"]}},
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1}
        | {"required": ["c"]},
        {"allOf": [{"type": "number", "minimum": 3}, {"type": "integer", "maximum": 3}]},
        {"allOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]},
        {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]},
        {"anyOf": [False, {"type": "string"}]},
        {"type": "number", "multipleOf": 0.5, "minimum": 0.1, "maximum": 0.9},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
        {"type": "integer", "minimum": 1e3},
        {"type": "string", "enum": [1, "a"]},
        {"minimum": 7},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(5))
def test_an_instance_meets_a_schema_of_rarer_keywords(schema: Any, seed: int) -> None:
    checked(schema, seed)


FORMATS = ["date", "time", "date-time", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_string_has_its_format(kind: str) -> None:
    schema = {"type": "string", "format": kind}
    made = instances.instance(schema, random.Random(1))
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(made)


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "parent": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value", "parent", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize("seed", range(20))
def test_a_schema_that_refers_to_itself_has_an_end(seed: int) -> None:
    jsonschema.Draft202012Validator(TREE).validate(instances.instance(TREE, random.Random(seed)))


def test_the_same_seed_gives_the_same_instance() -> None:
    made = [instances.instance(TREE, random.Random(7)) for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "array", "minItems": 3, "items": False},
        False,
    ],
    ids=str,
)
def test_where_nothing_meets_a_schema_the_instance_is_empty(schema: Any) -> None:
    assert instances.instance(schema, random.Random(1)) == {}


def test_a_schema_that_unfolds_without_measure_is_bounded() -> None:
    doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    wide = {"type": "object", "required": list("abcdefghij"), "additionalProperties": {"$ref": "#"}}
    assert instances.instance({"$defs": doubling, "$ref": "#/$defs/d0"}, random.Random(1)) == {}
    assert instances.instance(wide, random.Random(1)) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "uniqueItems": True, "minItems": 10**9},
        {"type": "array", "minItems": 4000, "items": {"pattern": "a{9000}", "maxLength": 5}},
        {"type": "object", "minProperties": 10**9},
        {"type": "object", "minProperties": 4000, "patternProperties": {"^a{60000}$": True}},
        {"type": "string", "minLength": 10**9},
        {"type": "number", "minimum": 10**400},
        {"type": "array", "items": {"type": "array", "minItems": 99}, "minItems": 999},
    ],
    ids=str,
)
def test_a_schema_that_asks_for_very_much_is_soon_done(schema: Any) -> None:
    made = instances.instance(schema, random.Random(1))
    assert len(json.dumps(made)) < 200_000


junk = st.recursive(
    scalars | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("type", "properties", "items", "required", "enum", "anyOf", "allOf", "$ref"),
                    *("minItems", "maxLength", "pattern", "minimum", "multipleOf", "contains"),
                    *("prefixItems", "patternProperties", "dependentRequired", "propertyNames"),
                ]
            ),
            inner,
        )
    ),
    max_leaves=10,
)


@given(junk, st.integers(0, 9))
@settings(max_examples=500, deadline=None)
def test_no_document_taken_for_a_schema_raises(document: Any, seed: int) -> None:
    instances.instance(document, random.Random(seed))


MANY = 30_000
NAMES, OTHERS = [f"a{i}" for i in range(MANY)], [f"b{i}" for i in range(MANY)]


def many(schema: Any) -> Any:
    return {"type": "array", "minItems": 4000, "items": schema}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"allOf": [{"enum": NAMES}, {"enum": OTHERS}]}, id="enumerations"),
        pytest.param({"allOf": [{"required": NAMES}, {"required": OTHERS}]}, id="required"),
        pytest.param({"allOf": [{"type": NAMES}, {"type": OTHERS}]}, id="types"),
        pytest.param({"properties": dict.fromkeys(NAMES, True), "required": NAMES}, id="all"),
        pytest.param(
            {"properties": dict.fromkeys(NAMES, True), "required": OTHERS, "maxProperties": MANY},
            id="most",
        ),
        pytest.param(many({"enum": NAMES}), id="long choice"),
        pytest.param(many({"properties": dict.fromkeys(NAMES, True)}), id="many properties"),
        pytest.param(many({"const": "x" * 10**6}), id="long value"),
        pytest.param(many({"required": ["x" * 10**6], "type": "object"}), id="long name"),
        pytest.param(
            {"allOf": [{"properties": {name: {"type": "string"}}} for name in NAMES]}, id="parts"
        ),
        pytest.param(many({"type": "string", "pattern": "(){8000}", "minLength": 5}), id="empty"),
        pytest.param(many({"type": "string", "pattern": "a{0}" * 1000, "minLength": 5}), id="read"),
    ],
)
def test_a_schema_made_to_be_slow_is_given_up(schema: Any) -> None:
    made = instances.instance(schema, random.Random(1))
    assert len(json.dumps(made)) < 200_000
