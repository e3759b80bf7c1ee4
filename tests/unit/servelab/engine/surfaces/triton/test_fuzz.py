"""Whatever is sent to Triton's own server is taken, or refused as the real one refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.engine.exchange import Request
from servelab.engine.surfaces.triton import documents, generation, inferring, repository
from servelab.engine.surfaces.triton.refusals import TritonError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = st.sampled_from([spec.name for spec in repository.SPECS]) | st.text(max_size=5)
TYPES = st.sampled_from(["BYTES", "INT32", "UINT64", "FP32", "FP16", "BOOL", "TEXT"])
PLACES = ["binary_data_size", "shared_memory_region"]
PARAMETERS = st.dictionaries(st.sampled_from(PLACES), st.integers(-1, 40) | VALUES, max_size=2)
TENSORS = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES | VALUES,
        "datatype": TYPES | VALUES,
        "shape": st.lists(st.integers(-1, 3), max_size=3) | VALUES,
        "data": st.lists(VALUES, max_size=3) | VALUES,
        "parameters": PARAMETERS | VALUES,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {"inputs": st.lists(TENSORS | VALUES, max_size=4) | VALUES},
    optional={"id": VALUES, "outputs": st.lists(VALUES) | VALUES, "parameters": VALUES},
)
PATH = "/v2/models/m/infer"


def status(parse: Callable[[], object]) -> int:
    """Of the answer; whatever else is raised is a fault."""
    try:
        parse()
    except TritonError as refusal:
        return refusal.response().status
    return 200


def inferred(headers: dict[str, str], body: bytes) -> int:
    request = Request("POST", PATH, PATH, headers, body)
    return status(lambda: inferring.parse(request, "m", 8))


@settings(max_examples=150, deadline=None)
@given(document=DOCUMENTS, after=st.binary(max_size=30))
def test_any_tensors_are_taken_or_refused(document: Any, after: bytes) -> None:
    head = json.dumps(document).encode()
    headers = {inferring.LENGTH.lower(): str(len(head))}
    assert inferred(headers, head + after) in (200, 400, 404, 500)


@given(
    body=st.binary(max_size=60),
    length=st.text(max_size=4),
    encoding=st.sampled_from(["", "gzip", "deflate", "br"]),
)
def test_any_bytes_are_taken_or_refused(body: bytes, length: str, encoding: str) -> None:
    headers = {inferring.LENGTH.lower(): length, "content-encoding": encoding}
    assert inferred(headers, body) in (400, 501)


@given(document=st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_request_to_generate_is_taken_or_refused(document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    assert status(lambda: generation.parse(body, "m", stream=False)) in (200, 400)


@given(st.text(alphabet='{}[]:,"\\ a1', max_size=20))
def test_any_text_is_json_or_none(text: str) -> None:
    assert status(lambda: documents.loaded(text.encode())) in (200, 400)


@pytest.mark.parametrize("depth", [99, 5000])
def test_deep_data_is_refused(depth: int) -> None:
    data = "[" * depth + "1" + "]" * depth
    tensor = f'{{"name": "max_tokens", "datatype": "INT32", "shape": [1, 1], "data": {data}}}'
    body = f'{{"inputs": [{tensor}]}}'.encode()
    assert inferred({}, body) == 400
