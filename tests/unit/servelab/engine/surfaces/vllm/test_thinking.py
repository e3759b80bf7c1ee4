"""Thoughts before an answer, in each of vLLM's APIs."""

import json
import socket
from typing import Any

import aiohttp
import pytest

from modelserve.adapters.clock import SystemClock
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Served
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer
from servelab.engine.surfaces.vllm import bodies, thinking

OPTIONS = (
    ("reasoning-parser", "deepseek_r1"),
    ("enable-auto-tool-choice", "true"),
    ("tool-call-parser", "hermes"),
)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SHORT = {"thinking_token_budget": 5, "seed": 1}

USER = {"role": "user", "content": "why"}
CHATS = "/v1/chat/completions"
CHAT = {"messages": [USER], "max_tokens": 12}


def wanted(parser: str, **fields: Any) -> Any:
    request = bodies.ChatRequest.model_validate(CHAT | fields)
    served = Served("m", 2048, (("reasoning-parser", parser),) if parser else ())
    return thinking.wanted(request, served, request.reasoning_effort)


@pytest.mark.parametrize(
    ("parser", "fields", "thinks"),
    [
        ("", {}, False),
        ("qwen3", {}, True),
        ("qwen3", {"chat_template_kwargs": {"enable_thinking": False}}, False),
        ("qwen3", {"reasoning_effort": "none"}, False),
        ("deepseek_v3", {}, False),
        ("deepseek_v3", {"chat_template_kwargs": {"thinking": True}}, True),
    ],
)
def test_a_model_thinks_as_parser_and_request_have_it(
    parser: str, fields: dict[str, Any], thinks: bool
) -> None:
    assert (wanted(parser, **fields) is not None) == thinks


def test_thoughts_that_the_template_opened_are_not_counted() -> None:
    assert (wanted("deepseek_r1").counted, wanted("qwen3").counted) == (False, True)


async def answered(path: str, body: dict[str, Any]) -> Any:
    """The document, or the data of all events."""
    config = CoreConfig(8, 512, 8192, 4096)
    spec = EngineSpec("m", "m", config, SteadyLaw(0.0001), 0.9, 1, options=OPTIONS)
    server, sock = EngineServer(spec, SystemClock()), socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    try:
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{sock.getsockname()[1]}") as http,
            http.post(path, json=body) as response,
        ):
            text = await response.text()
    finally:
        await server.kill()
    if not body.get("stream"):
        return json.loads(text)
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


async def test_a_chat_tells_thoughts_beside_the_content() -> None:
    told = await answered(CHATS, CHAT | SHORT | {"max_tokens": 20})
    message = told["choices"][0]["message"]
    assert (len(message["reasoning"].split()), "</think>" in message["content"]) == (5, False)
    assert told["usage"]["completion_tokens"] == 20
    assert told["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


async def test_a_chat_cut_in_its_thoughts_has_no_content() -> None:
    told = await answered(CHATS, CHAT | {"max_tokens": 4})
    choice = told["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "length")
    assert len(choice["message"]["reasoning"].split()) == 4


async def test_a_stream_tells_thoughts_first() -> None:
    body = CHAT | SHORT | {"max_tokens": 20, "stream": True}
    deltas = [event["choices"][0]["delta"] for event in await answered(CHATS, body)]
    keys = [next(iter(delta)) for delta in deltas[1:]]
    assert keys == ["reasoning"] * 5 + ["content"] * keys.count("content")
    assert not any("think" in str(delta) for delta in deltas)


async def test_thoughts_that_are_not_wanted_are_not_told() -> None:
    body = CHAT | SHORT | {"max_tokens": 20, "include_reasoning": False}
    whole = await answered(CHATS, body)
    deltas = [
        each["choices"][0]["delta"] for each in await answered(CHATS, body | {"stream": True})
    ]
    assert whole["choices"][0]["message"]["reasoning"] is None
    assert all(delta["reasoning"] is None for delta in deltas[1:])


async def test_a_function_is_called_after_thoughts() -> None:
    body = CHAT | SHORT | {"max_tokens": 200, "tools": [TOOL], "tool_choice": "required"}
    whole = (await answered(CHATS, body))["choices"][0]["message"]
    events = await answered(CHATS, body | {"stream": True})
    deltas = [event["choices"][0]["delta"] for event in events]
    assert (len(whole["reasoning"].split()), len(whole["tool_calls"])) == (5, 1)
    assert sum("tool_calls" in delta for delta in deltas) > 1
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("choice", ["auto", "any"])
async def test_a_choice_among_no_tools_is_no_matter_where_there_is_a_parser(choice: str) -> None:
    body = CHAT | {"model": "m", "max_tokens": 4, "tool_choice": {"type": choice}}
    assert (await answered("/v1/messages", body))["type"] == "message"


async def test_messages_tell_thoughts_as_a_block() -> None:
    body = CHAT | {"model": "m", "max_tokens": 4}
    (block,) = (await answered("/v1/messages", body))["content"]
    assert (block["type"], sorted(block)) == ("thinking", ["signature", "thinking", "type"])
    kinds = [event["type"] for event in await answered("/v1/messages", body | {"stream": True})]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


async def test_responses_tell_thoughts_as_an_item() -> None:
    body = {"input": "why", "max_output_tokens": 3000, "seed": 4}
    told = await answered("/v1/responses", body)
    assert [item["type"] for item in told["output"]] == ["reasoning", "message"]
    events = await answered("/v1/responses", body | {"stream": True})
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in done] == ["reasoning", "message"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
