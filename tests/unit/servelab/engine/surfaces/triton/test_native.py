"""Triton's own server: tensors as bytes, compression, models on demand, a full queue."""

import dataclasses
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from modelserve.engines import triton
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Request
from servelab.engine.surfaces.triton import inferring, repository, tensors
from servelab.engine.surfaces.triton.refusals import TritonError
from servelab.engine.surfaces.triton.surface import TritonSurface

TEXT: dict[str, Any] = {"name": "text_input", "datatype": "BYTES", "shape": [1, 1]}
LIMIT: dict[str, Any] = {"name": "max_tokens", "datatype": "INT32", "shape": [1, 1]}
PLAIN = {"inputs": [TEXT | {"data": ["a"]}, LIMIT | {"data": [3]}]}


def posted(document: object, after: bytes = b"", **headers: str) -> Request:
    head = json.dumps(document).encode()
    told = {inferring.LENGTH.lower(): str(len(head))} if after else {}
    path = "/v2/models/llama-8b/infer"
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("POST", path, path, told | given, head + after)


def asked(request: Request) -> inferring.Asked:
    return inferring.parse(request, "llama-8b", 8)


def binary(tensor: dict[str, Any], size: int) -> dict[str, Any]:
    return tensor | {"parameters": {"binary_data_size": size}}


def test_a_text_may_come_as_bytes_after_the_json() -> None:
    data = tensors.packed("BYTES", ["hello the model"])
    given = [binary(TEXT, len(data)), LIMIT | {"data": [3]}]
    call = asked(posted({"inputs": given}, data)).wanted.call
    assert (call.prompts[0].text, call.max_tokens) == ("hello the model", 3)


def test_a_number_may_come_as_bytes_after_the_json() -> None:
    given = [TEXT | {"data": ["a"]}, binary(LIMIT, 4)]
    assert asked(posted({"inputs": given}, struct.pack("<i", 7))).wanted.call.max_tokens == 7


@pytest.mark.parametrize(
    ("size", "after", "told"),
    [
        (9, b"abc", "unexpected size for input 'max_tokens', expecting 6 additional bytes"),
        (2, b"abcd", "unexpected additional input data for model 'llama-8b'"),
        (3, b"abc", "input byte size mismatch for input 'max_tokens' for model 'llama-8b'. "),
    ],
    ids=["too few", "too many", "no whole number"],
)
def test_bytes_that_do_not_fit_are_refused(size: int, after: bytes, told: str) -> None:
    given = [TEXT | {"data": ["a"]}, binary(LIMIT, size)]
    with pytest.raises(TritonError, match=told):
        asked(posted({"inputs": given}, after))


def test_a_compressed_body_is_read() -> None:
    body = zlib.compress(posted(PLAIN).body)
    request = Request("POST", "/", "/", {"content-encoding": "deflate"}, body)
    assert asked(request).wanted.call.prompts[0].text == "a"


@pytest.mark.parametrize(
    ("told", "chosen"),
    [("", ""), ("gzip, deflate", "gzip"), ("gzip;q=0.5,deflate", "deflate"), ("br", "")],
)
def test_the_answers_compression_is_what_the_client_weighs_most(told: str, chosen: str) -> None:
    assert asked(posted(PLAIN, accept_encoding=told)).compression == chosen


def test_a_model_that_was_unloaded_serves_no_more_until_it_is_loaded() -> None:
    models = repository.Repository("llama-8b", 8, explicit=True)
    models.unload("llama-8b")
    with pytest.raises(TritonError, match="'llama-8b' has no available versions"):
        models.check("llama-8b", "")
    assert [each["name"] for each in models.index(ready=True)] == list(models.loaded)
    models.load("llama-8b")
    models.check("llama-8b", "")


def test_a_full_queue_is_told_as_the_core_does(hosted: Callable[..., Any]) -> None:
    host = hosted(EngineType.TRITON)
    host.spec = dataclasses.replace(host.spec, options=(triton.NATIVE,))
    path = "/v2/models/llama-8b/generate"
    request = Request("POST", path, path, {}, parameters={"model": "llama-8b"})
    answer = TritonSurface(host).refused(request, QueueFull("full"))
    told = "in ensemble 'llama-8b', [request id: <id_unknown>] Exceeds maximum queue size"
    assert (answer.status, json.loads(answer.body)["error"]) == (503, told)
