"""Bodies that are refused: what axum and serde_json say of them, and where."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces.tgi import bodies, places, refusals, serde

JSON = "application/json"


def refusal(body: bytes, kind: serde.Kind = bodies.GENERATE) -> str:
    with pytest.raises(refusals.Rejection) as caught:
        serde.read(kind, body, JSON)
    return str(caught.value).partition(": ")[2]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{}", "missing field `inputs` at line 1 column 2"),
        (b'{\n "inputs": null}',
         "inputs: invalid type: null, expected a string at line 2 column 15"),
        (b'{"inputs": []}',
         "inputs: invalid type: sequence, expected a string at line 1 column 11"),
        (b'{"inputs": "a", "parameters": {"details": 1}}',
         "parameters.details: invalid type: integer `1`, expected a boolean at line 1 column 43"),
        (b'{"inputs": "a", "parameters": {"stop": ["a", 1.5]}}',
         "parameters.stop[1]: invalid type: floating point `1.5`, expected a string"
         " at line 1 column 48"),
        (b'{"inputs": "a", "parameters": {"top_k": 3000000000}}',
         "parameters.top_k: invalid value: integer `3000000000`, expected i32"
         " at line 1 column 50"),
        (b"[]", "invalid type: sequence, expected struct GenerateRequest at line 1 column 0"),
    ],
)  # fmt: skip
def test_the_first_value_of_a_wrong_kind_is_told(body: bytes, told: str) -> None:
    assert refusal(body) == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b"{", "EOF while parsing an object at line 1 column 1"),
        (b'{"inputs"', "EOF while parsing an object at line 1 column 9"),
        (b'{"inputs": "a",}', "trailing comma at line 1 column 16"),
        (b'{"inputs": tru}', "expected ident at line 1 column 15"),
        (b'{"inputs": NaN}', "expected value at line 1 column 12"),
        (b'{inputs: "a"}', "key must be a string at line 1 column 2"),
        (b'{"inputs": "\\ud800"}', "unexpected end of hex escape at line 1 column 19"),
        (b"[" * 200, "recursion limit exceeded at line 1 column 128"),
    ],
)
def test_what_is_no_json_is_told_where_it_ends(body: bytes, told: str) -> None:
    assert refusal(body) == told


def status(kind: serde.Kind, body: bytes) -> int:
    """Of the refusal; 200 where there is none."""
    try:
        serde.read(kind, body, JSON)
    except refusals.Rejection as rejection:
        return rejection.status
    return 200


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode()))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    assert status(bodies.GENERATE, body) in (200, 400, 422)


_NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*bodies.PARAMETERS, "inputs", "parameters"]), inner)
    ),
    max_leaves=8,
)


@given(_JSON, st.sampled_from([bodies.GENERATE, bodies.CHAT, bodies.COMPLETION, bodies.INVOCATION]))
def test_any_json_is_taken_or_refused_as_data(document: object, kind: serde.Kind) -> None:
    assert status(kind, json.dumps(document).encode()) in (200, 422)


def test_what_follows_the_first_value_is_not_looked_at() -> None:
    assert serde.read(bodies.GENERATE, b'{"inputs": "a"} {', JSON)["inputs"] == "a"


def test_places_are_those_of_the_values() -> None:
    text = b'{"a": [1, {"b": "c"}]}'
    span = places.spans(text).at(("a", 1, "b"))
    assert text[span.start : span.end] == b'"c"'
