"""What a client of the admin endpoint may write."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from servelab.engine.admin import documents

SQUARE = {"shape": "square", "low": 0, "high": 40, "period_s": 60}


def queue(document: Any) -> documents.Queue:
    return documents.parse(documents.Queue, json.dumps(document).encode())


def test_a_number_is_a_fixed_wave() -> None:
    assert queue({"waiting": 20}) == queue({"waiting": {"shape": "fixed", "value": 20}})
    assert queue({"waiting": {"value": 20}}).waiting == queue({"waiting": 20}).waiting


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"waiting": -1}, "waiting.fixed.value: Input should be greater than or equal to 0"),
        ({"waiting": {**SQUARE, "period_s": 0}}, "waiting.square.period_s"),
        ({"waiting": {**SQUARE, "period_s": 5e-324}}, "waiting.square.period_s"),
        ({"waiting": {**SQUARE, "high": False}}, "waiting.square.high"),
        ({"waiting": {**SQUARE, "dutty": 0.5}}, "waiting.square.dutty: Extra inputs"),
        ({"waiting": {"shape": "triangle"}}, "waiting: Input tag 'triangle'"),
        ({"queued": 3}, "queued: Extra inputs are not permitted"),
        ({"kv_usage": 1.5}, "kv_usage: Value error, a share is at most 1, not 1.5"),
        ({"kv_usage": {**SQUARE}}, "a share is at most 1, not 40"),
        ({"running": True}, "running"),
        ([], "Input should be an object"),
    ],
)
def test_what_cannot_be_used_is_named(document: Any, sentence: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        queue(document)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"waiting": NaN}', b'{"waiting": 1e999}'])
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(errors.InputError):
        documents.parse(documents.Queue, raw)


@pytest.mark.parametrize("raw", [b"{", b"\xff", b"NaN", b'5, "running": 7'])
def test_one_field_is_one_field(raw: bytes) -> None:
    with pytest.raises(errors.InputError):
        documents.one(documents.Queue, "waiting", raw)


def test_a_fault_without_a_body_has_its_defaults() -> None:
    found = documents.one(documents.Faults, "errors", b"")["errors"]
    assert (found.share, found.status, found.start_s, found.for_s) == (1.0, 503, 0.0, None)


def test_what_is_shown_can_be_put_again() -> None:
    document = {"waiting": SQUARE, "kv_usage": {"shape": "ramp", "from": 0, "to": 1, "over_s": 9}}
    shown = documents.shown(documents.given(queue(document)))
    assert queue(shown) == queue(document)


@given(st.binary(max_size=60))
def test_any_body_is_read_or_refused(raw: bytes) -> None:
    for kind in (documents.Queue, documents.Faults):
        with contextlib.suppress(errors.InputError):
            documents.parse(kind, raw)
