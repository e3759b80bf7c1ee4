"""What can be embedded, and how it is told, as the real server with a pooling model answered."""

import math
import struct
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.surfaces.vllm import embeddings

PATH = "/v1/embeddings"
SAID = [{"role": "user", "content": "hi"}]


@pytest.fixture
def host(hosted: Callable[..., Any]) -> Any:
    return hosted(EngineType.VLLM, ("runner", "pooling"))


@pytest.mark.parametrize(
    ("body", "prompts"),
    [
        ({"input": "hi"}, 1),
        ({"input": ["hi", "ho"]}, 2),
        ({"input": [[1, 2], [3]]}, 2),
        ({"messages": SAID}, 1),
        ({"messages": [SAID, SAID]}, 2),
        ({"input": SAID}, 1),
        ({"input": [SAID, SAID, SAID]}, 3),
        ({"input": ["hi", "ho"], "messages": SAID}, 1),
        ({"input": "hi", "add_generation_prompt": "no switch of a prompt's"}, 1),
    ],
    ids=str,
)
def test_prompts_and_chats_are_taken_under_two_names(
    host: Any, body: dict[str, Any], prompts: int
) -> None:
    for path in (PATH, "/invocations"):
        assert host.ask("POST", path, body).status == 0
        assert len(host.replies[-1].call.prompts) == prompts


@pytest.mark.parametrize(
    ("body", "status", "kind", "param"),
    [
        ({}, 400, "Bad Request", "body.input"),
        ({"input": 5}, 400, "Bad Request", "body.input"),
        ({"input": ["a", 1]}, 400, "Bad Request", "body.input.0"),
        ({"input": "x", "user": 5}, 400, "Bad Request", "body.user"),
        ({"messages": SAID, "user": 5}, 400, "Bad Request", "body.input"),
        ({"input": "x", "endianness": "zz"}, 400, "Bad Request", "body.endianness"),
        ({"input": "x", "priority": None}, 400, "Bad Request", "body.priority"),
        ({"input": "x", "normalize": True}, 400, "BadRequestError", "normalize"),
        ({"input": "x", "cache_salt": "a/b"}, 400, "BadRequestError", "cache_salt"),
        ({"input": []}, 400, "BadRequestError", None),
        ({"input": [-1]}, 400, "BadRequestError", None),
        ({"input": "x", "model": "zz"}, 404, "NotFoundError", None),
        ({"messages": SAID, "chat_template": "x"}, 400, "BadRequestError", None),
        (
            {"input": "x", "mm_processor_kwargs": {"a": 1}},
            400,
            "BadRequestError",
            "mm_processor_kwargs",
        ),
    ],
    ids=str,
)
def test_other_bodies_are_refused(
    host: Any, body: dict[str, Any], status: int, kind: str, param: str | None
) -> None:
    answered = host.ask("POST", PATH, body)
    error = answered.document["error"]
    assert (answered.status, error["type"], error["param"]) == (status, kind, param)


def test_a_pooling_model_has_no_paths_of_one_that_generates(host: Any) -> None:
    paths = {route.path for route in host.surface.routes()}
    assert {PATH, "/invocations", "/tokenize", "/ping", "/v1/decisions"} <= paths
    assert not any(
        path.startswith(("/v1/responses", "/v1/messages", "/inference")) for path in paths
    )
    assert "/scale_elastic_ep" not in paths


# By the types' own definitions.
@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        ("bfloat16", 1.0, 0x3F80),
        ("bfloat16", -0.5, 0xBF00),
        ("bfloat16", 0.2, 0x3E4D),
        ("fp8_e4m3", 1.0, 0x38),
        ("fp8_e4m3", -0.5, 0xB0),
        ("fp8_e4m3", 2**-9, 0x01),
        ("fp8_e5m2", 1.0, 0x3C),
        ("fp8_e5m2", 0.0, 0x00),
    ],
)
def test_small_floats_are_rounded(kind: str, value: float, code: int) -> None:
    assert embeddings.small_float(value, *embeddings.BITS[kind]) == code


def test_half_precision_is_packed_by_the_same_rule() -> None:
    for value in (1.0, -0.3, 0.00001, 0.9999, 0.0):
        (expected,) = struct.unpack("<H", struct.pack("<e", value))
        assert embeddings.small_float(value, 5, 10) == expected
    assert not math.isnan(embeddings.small_float(1e-12, 5, 10))
