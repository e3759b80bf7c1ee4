"""TensorRT-LLM's surface: what it was started with, and what it does with a request's limits."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.core.sequences import Finish, FinishReason, Output
from servelab.engine.metrics import tensorrt_llm as metrics
from servelab.engine.surfaces.surface import State
from servelab.engine.surfaces.tensorrt_llm.surface import TensorrtLlmSurface
from servelab.engine.text import writing

Hosted = Callable[..., Any]
ENGINE = EngineType.TENSORRT_LLM
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
DONE = Finish("a", FinishReason.LENGTH, 2.0, 0.0, 0.1, 0.5, 2.0, 3, 2, 0)


def paths(host: Any) -> set[str]:
    return {route.path for route in host.surface.routes()}


def test_prometheus_is_there_only_if_requests_are_measured(hosted: Hosted) -> None:
    assert "/prometheus/metrics" not in paths(hosted(ENGINE))
    assert "/prometheus/metrics" not in paths(hosted(ENGINE, metrics.STEPS))
    assert "/prometheus/metrics" in paths(hosted(ENGINE, metrics.REQUESTS))


def test_steps_are_told_once(hosted: Hosted) -> None:
    host = hosted(ENGINE, metrics.STEPS)
    host.exporter.observe([Output((1.0, 1.5), ("a",), finished=(DONE,))])
    told = host.ask("GET", "/metrics").document
    assert [step["iter"] for step in told] == [1, 2]
    assert [step["numCompletedRequests"] for step in told] == [0, 1]
    assert told[1]["iterLatencyMS"] == 500
    assert host.ask("GET", "/metrics").document == []


def test_it_tells_its_limits(hosted: Hosted) -> None:
    told = hosted(ENGINE).ask("GET", "/server_info").document
    assert (told["max_batch_size"], told["tokens_per_block"]) == (8, 16)


def test_nothing_answers_while_it_loads(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    host.state = State.LOADING
    assert host.ask("GET", "/health", loading=True).status == 503
    assert all(route.while_loading is None for route in host.surface.routes())


def test_health_stays_good_while_it_drains(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    host.state = State.DRAINING
    assert host.ask("GET", "/health").status == 200


def test_an_engine_that_is_told_a_limit_has_too_many_waiting(hosted: Hosted) -> None:
    answer = hosted(ENGINE, full=True).ask("POST", "/v1/chat/completions", CHAT)
    assert (answer.status, answer.document["code"]) == (503, 503)


def test_bodies_that_do_not_meet_the_schema_are_counted_as_errors(hosted: Hosted) -> None:
    host = hosted(ENGINE, metrics.REQUESTS)
    host.ask("POST", "/v1/chat/completions", {})
    line = 'trtllm_request_error_total{engine_type="pytorch",http_code="400",model_name="llama-8b"}'
    assert f"{line} 1.0\n" in host.ask("GET", "/prometheus/metrics").body.decode()


def test_a_backend_makes_answers_be_of_a_kind(hosted: Hosted) -> None:
    body = CHAT | {"response_format": {"type": "json_object"}}
    host = hosted(ENGINE)
    host.ask("POST", "/v1/chat/completions", body)
    assert host.replies[-1].call.write is None
    host = hosted(ENGINE, "guided-decoding-backend")
    host.ask("POST", "/v1/chat/completions", body)
    assert host.replies[-1].call.write is not None


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json", "schema": {"type": "integer"}},
        {"type": "json_schema", "json_schema": {"type": "integer"}},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}},
        {"type": "regex", "regex": "[0-9]"},
    ],
)
def test_an_answer_is_of_the_kind_that_was_asked_for(hosted: Hosted, given: dict[str, Any]) -> None:
    host = hosted(ENGINE, "guided-decoding-backend")
    host.ask("POST", "/v1/chat/completions", CHAT | {"response_format": given})
    write: writing.Write = host.replies[-1].call.write
    assert host.replies[-1].call.answer(1).text(99).strip("-").isdigit()
    assert write is not None


def test_a_named_function_needs_a_backend_and_a_parser(hosted: Hosted) -> None:
    body = CHAT | {"tools": TOOLS, "tool_choice": {"function": {"name": "f"}}}
    told = [
        hosted(ENGINE, *options).ask("POST", "/v1/chat/completions", body).document["message"]
        for options in ((), ("guided-decoding-backend",))
    ]
    assert ["backend" in each for each in told] == [True, False]


@pytest.mark.parametrize(("chunked", "status"), [(True, 0), (False, 400)])
def test_a_prompt_must_fit_a_batch_if_it_is_not_divided(
    hosted: Hosted, chunked: bool, status: int
) -> None:
    host = hosted(ENGINE)
    config = dataclasses.replace(host.spec.config, max_batched_tokens=100, chunked_prefill=chunked)
    host.spec = dataclasses.replace(host.spec, config=config)
    host.surface = TensorrtLlmSurface(host)
    answer = host.ask("POST", "/v1/completions", {"model": "m", "prompt": [7] * 101})
    assert answer.status == status


def test_a_prompt_can_be_cut_to_its_last_tokens(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    body = {"model": "m", "prompt": [1, 2, 3], "truncate_prompt_tokens": 2}
    host.ask("POST", "/v1/completions", body)
    assert host.replies[-1].call.prompts[0].ids == (2, 3)


def test_a_chat_that_goes_on_has_its_last_role(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    said = [*CHAT["messages"], {"role": "assistant", "content": "so"}]
    body = CHAT | {"messages": said, "add_generation_prompt": False, "echo": True}
    host.ask("POST", "/v1/chat/completions", body)
    assert host.replies[-1].call.role == "assistant"
    assert host.replies[-1].asked.echoed == "so"


@pytest.mark.parametrize(
    "body",
    [
        CHAT | {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        CHAT | {"max_tokens": 0},
        CHAT | {"n": 0},
        CHAT | {"n": 10**9},
        CHAT | {"n": 2, "top_k": 1, "top_p": 0},
        CHAT | {"use_beam_search": True},
    ],
)
def test_what_cannot_be_served_is_refused(hosted: Hosted, body: dict[str, Any]) -> None:
    answer = hosted(ENGINE).ask("POST", "/v1/chat/completions", body)
    assert (answer.status, answer.document["type"]) == (400, "BadRequestError")


def test_tools_and_earlier_calls_are_part_of_the_prompt(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    called = {"function": {"name": "f", "arguments": "{}"}}
    said = [*CHAT["messages"], {"role": "assistant", "tool_calls": [called, {"function": 5}]}]
    for body in (CHAT, CHAT | {"tools": TOOLS}, CHAT | {"messages": said}):
        host.ask("POST", "/v1/chat/completions", body)
    plain, with_tools, with_calls = (reply.call.prompts[0].tokens for reply in host.replies)
    assert plain < min(with_tools, with_calls)
