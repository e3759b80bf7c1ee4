"""Text, tokens and calls over HTTP, counted as a client counts."""

import base64
import json
import math
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import jsonschema
import pytest
from tokenizers import Tokenizer

from modelserve.adapters.clock import SystemClock
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer
from servelab.engine.text import encoding

TOKENIZER = Tokenizer.from_str(encoding.folder().joinpath("tokenizer.json").read_text("utf-8"))
PARSER = (("enable-auto-tool-choice", "true"), ("tool-call-parser", "hermes"))
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["°C", "°F"]},
        "days": {"type": "array", "items": {"type": "integer", "maximum": 7}, "minItems": 2},
    },
    "required": ["city", "unit", "days"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "the time"}}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello you"}], "seed": 1}
ASK: dict[str, Any] = CHAT | {"tools": [WEATHER], "tool_choice": "required"}

Answer = tuple[int, Any]


class Client:
    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def post(self, path: str, body: object) -> Answer:
        async with self._http.post(path, json=body) as response:
            return response.status, await response.json()

    async def chat(self, body: object) -> Any:
        status, document = await self.post("/v1/chat/completions", body)
        assert status == 200, document
        return document

    async def events(self, path: str, body: dict[str, Any]) -> list[Any]:
        """The data of named events."""
        async with self._http.post(path, json=body | {"stream": True}) as response:
            lines = (await response.text()).splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    async def chunks(self, body: dict[str, Any], path: str = "/v1/chat/completions") -> list[Any]:
        async with self._http.post(path, json=body | {"stream": True}) as response:
            text = await response.text()
        datas = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        assert datas.pop() == "[DONE]"
        return [json.loads(data) for data in datas]


@asynccontextmanager
async def serving(
    *options: tuple[str, str], model: str = "meta-llama/Llama-3.1-8B-Instruct"
) -> AsyncIterator[Client]:
    config = CoreConfig(8, 512, 8192, 4096, prefix_caching=True)
    spec = EngineSpec("m", model, config, SteadyLaw(0.0001), 0.9, 1, options=options)
    server = EngineServer(spec, SystemClock())
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with aiohttp.ClientSession(base) as http:
        try:
            yield Client(http)
        finally:
            await server.kill()


def count(text: str) -> int:
    return len(TOKENIZER.encode(text).ids)


def delta(event: Any) -> dict[str, Any]:
    found: dict[str, Any] = event["choices"][0]["delta"]
    return found


@pytest.mark.parametrize("prompt", ["hello", "Éa, 日本 👩‍👧\n\n  x = f(1234)", "<|im_start|>"])
async def test_usage_is_what_a_client_counts(prompt: str) -> None:
    async with serving() as client:
        body = {"prompt": prompt, "max_tokens": 20, "ignore_eos": True}
        _, document = await client.post("/v1/completions", body)
    assert document["usage"]["prompt_tokens"] == count(prompt)
    assert document["usage"]["completion_tokens"] == 20 == count(document["choices"][0]["text"])


async def test_a_streamed_answer_is_counted_as_one() -> None:
    body = CHAT | {"max_tokens": 50, "stream_options": {"include_usage": True}}
    async with serving() as client:
        *events, usage = await client.chunks(body)
    text = "".join(delta(event)["content"] for event in events)
    assert usage["usage"]["completion_tokens"] == count(text)


async def test_tokens_go_there_and_back() -> None:
    async with serving() as client:
        text = 'Grüße,\n{"a": 1} 日'
        _, told = await client.post("/tokenize", {"prompt": text, "return_token_strs": True})
        _, back = await client.post("/detokenize", {"tokens": told["tokens"]})
    encoded = TOKENIZER.encode(text)
    assert (told["tokens"], told["token_strs"]) == (encoded.ids, encoded.tokens)
    assert (told["count"], back["prompt"]) == (len(encoded.ids), text)


async def test_a_chat_is_tokenized_as_it_is_counted() -> None:
    async with serving(*PARSER) as client:
        body = {"messages": CHAT["messages"], "tools": [WEATHER]}
        _, told = await client.post("/tokenize", body)
        answer = await client.chat(ASK)
    assert answer["usage"]["prompt_tokens"] == told["count"]


async def test_how_much_was_in_the_cache_is_told_if_the_engine_is_to() -> None:
    body = {"messages": [{"role": "user", "content": "hello " * 100}], "max_tokens": 2}
    async with serving(("enable-prompt-tokens-details", "true")) as client:
        first, again = [(await client.chat(body))["usage"] for _ in range(2)]
        stream = await client.chunks(body | {"stream_options": {"include_usage": True}})
    told = again["prompt_tokens_details"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert (told["cached_tokens"], told["multimodal_tokens"]) == (96, None)
    assert stream[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 96


async def test_nothing_is_told_of_the_cache_by_default() -> None:
    async with serving() as client:
        answer = await client.chat(CHAT | {"max_tokens": 2})
    assert answer["usage"]["prompt_tokens_details"] is None


async def test_a_required_call_meets_the_schema() -> None:
    async with serving(*PARSER) as client:
        answer = await client.chat(ASK)
    (choice,) = answer["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "")
    assert (call["type"], call["function"]["name"]) == ("function", "weather")
    arguments = json.loads(call["function"]["arguments"])
    jsonschema.Draft202012Validator(PARAMETERS).validate(arguments)


async def test_a_named_call_ends_with_stop() -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    async with serving(*PARSER) as client:
        answer = await client.chat(ASK | {"tools": [WEATHER, CLOCK], "tool_choice": named})
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "clock"


async def test_left_to_the_model_a_function_is_called_until_it_has_answered() -> None:
    body = CHAT | {"tools": [WEATHER], "max_tokens": 200}
    async with serving(*PARSER) as client:
        asked = (await client.chat(body))["choices"][0]["message"]
        result = {"role": "tool", "content": "sunny", "tool_call_id": asked["tool_calls"][0]["id"]}
        said = [*body["messages"], asked, result]
        told = (await client.chat(body | {"messages": said}))["choices"][0]["message"]
    assert asked["content"] is None
    assert "tool_calls" not in told
    assert told["content"]


async def test_a_call_is_streamed_by_its_parts() -> None:
    async with serving(*PARSER) as client:
        whole = await client.chat(ASK)
        *events, last = await client.chunks(ASK)
    call = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    deltas = [each for event in [*events[1:], last] for each in delta(event).get("tool_calls", ())]
    assert deltas[0] | {"id": ""} == {
        "id": "",
        "type": "function",
        "index": 0,
        "function": {"name": "weather"},
    }
    assert deltas[0]["id"].startswith("chatcmpl-tool-")
    assert all(set(each) == {"index", "function"} for each in deltas[1:])
    assert "".join(each["function"]["arguments"] for each in deltas[1:]) == call["arguments"]
    assert (delta(last), last["choices"][0]["finish_reason"]) == ({}, "tool_calls")


async def test_a_call_that_is_cut_stays_text() -> None:
    async with serving(*PARSER) as client:
        cut = (await client.chat(ASK | {"max_tokens": 20}))["choices"][0]
        events = await client.chunks(ASK | {"max_tokens": 20})
    assert (cut["finish_reason"], "tool_calls" in cut["message"]) == ("length", False)
    assert cut["message"]["content"].startswith("<tool_call>")
    assert events[-1]["choices"][0]["finish_reason"] == "length"


async def test_the_tokens_of_a_call_are_counted() -> None:
    async with serving(*PARSER) as client:
        answer = await client.chat(ASK | {"return_token_ids": True})
    text = TOKENIZER.decode(answer["choices"][0]["token_ids"])
    assert answer["usage"]["completion_tokens"] == count(text)
    assert text.startswith('<tool_call>\n{"name": "weather", "arguments": {')


@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_without_a_parser_tools_are_refused(choice: str) -> None:
    async with serving() as client:
        status, _ = await client.post("/v1/chat/completions", ASK | {"tool_choice": choice})
    assert status == 400


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_json_by_schema_is_the_same_whole_and_streamed(path: str) -> None:
    body = CHAT | {"prompt": "hello", "structured_outputs": {"json": PARAMETERS}}
    body |= {"max_tokens": 2000, "stream_options": {"include_usage": True}}
    async with serving() as client:
        *events, usage = await client.chunks(body, path)
        del body["stream_options"]
        _, whole = await client.post(path, body)
    choice = whole["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    parts = [event["choices"][0] for event in events]
    streamed = "".join(
        each["text"] if "text" in each else each["delta"]["content"] for each in parts
    )
    assert streamed == text
    assert usage["usage"]["completion_tokens"] == count(text)
    assert parts[-1]["finish_reason"] == choice["finish_reason"] == "stop"
    jsonschema.Draft202012Validator(PARAMETERS).validate(json.loads(text))


async def test_json_is_cut_where_no_more_tokens_are_allowed() -> None:
    body = CHAT | {"response_format": {"type": "json_object"}, "max_tokens": 4}
    async with serving() as client:
        answer = await client.chat(body)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert count(answer["choices"][0]["message"]["content"]) == 4


async def test_each_choice_and_each_seed_has_a_text_of_its_own() -> None:
    body = CHAT | {"n": 3, "max_tokens": 8}
    async with serving() as client:
        once, again = await client.chat(body), await client.chat(body)
        other = await client.chat(body | {"seed": 99})
    texts = [[each["message"]["content"] for each in a["choices"]] for a in (once, again, other)]
    assert texts[0] == texts[1] != texts[2]
    assert len(set(texts[0])) == 3


async def test_probabilities_of_json_name_its_tokens() -> None:
    body = CHAT | {"response_format": {"type": "json_object"}, "logprobs": True, "top_logprobs": 2}
    async with serving() as client:
        answer = await client.chat(body | {"max_tokens": 300})
    choice = answer["choices"][0]
    tokens = [each["token"] for each in choice["logprobs"]["content"]]
    assert "".join(tokens) == choice["message"]["content"]
    assert all(len(each["top_logprobs"]) == 2 for each in choice["logprobs"]["content"])


CLAUDE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 500,
    "messages": [{"role": "user", "content": "hello"}],
    "tools": [{"name": "weather", "input_schema": PARAMETERS}],
}


async def test_messages_use_tools_in_anthropics_shape() -> None:
    async with serving(*PARSER) as client:
        status, asked = await client.post("/v1/messages", CLAUDE)
        (use,) = asked["content"]
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "sunny"}
        said = [
            *CLAUDE["messages"],
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
        _, told = await client.post("/v1/messages", CLAUDE | {"messages": said})
    assert (status, asked["stop_reason"], use["type"]) == (200, "tool_use", "tool_use")
    jsonschema.Draft202012Validator(PARAMETERS).validate(use["input"])
    assert [block["type"] for block in told["content"]] == ["text"]


async def test_a_tool_use_is_streamed_as_anthropics_events() -> None:
    async with serving(*PARSER) as client:
        events = await client.events("/v1/messages", CLAUDE)
    kinds = [event["type"] for event in events]
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    arguments = json.loads("".join(delta["partial_json"] for delta in deltas))
    jsonschema.Draft202012Validator(PARAMETERS).validate(arguments)
    assert events[1]["content_block"]["name"] == "weather"
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


RESPOND: dict[str, Any] = {"input": "hello", "seed": 4, "max_output_tokens": 500}
FUNCTION = {"type": "function", "name": "weather", "parameters": PARAMETERS}


async def test_a_response_calls_a_function_and_takes_its_answer() -> None:
    body = RESPOND | {"tools": [FUNCTION]}
    async with serving(*PARSER) as client:
        _, asked = await client.post("/v1/responses", body)
        (call,) = asked["output"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
        said = [{"role": "user", "content": "hello"}, call, result]
        _, told = await client.post("/v1/responses", body | {"input": said})
    assert (call["type"], call["name"], call["status"]) == ("function_call", "weather", "completed")
    jsonschema.Draft202012Validator(PARAMETERS).validate(json.loads(call["arguments"]))
    assert [item["type"] for item in told["output"]] == ["message"]


async def test_a_call_of_a_response_is_streamed_by_its_arguments() -> None:
    body = RESPOND | {"tools": [FUNCTION], "tool_choice": "required"}
    async with serving(*PARSER) as client:
        _, whole = await client.post("/v1/responses", body)
        events = await client.events("/v1/responses", body)
    kind = "response.function_call_arguments.delta"
    streamed = "".join(event["delta"] for event in events if event["type"] == kind)
    (call,) = events[-1]["response"]["output"]
    assert streamed == whole["output"][0]["arguments"] == call["arguments"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_a_response_keeps_to_the_format_of_its_text() -> None:
    form = {"type": "json_schema", "name": "w", "schema": PARAMETERS}
    async with serving() as client:
        _, document = await client.post("/v1/responses", RESPOND | {"text": {"format": form}})
    text = document["output"][0]["content"][0]["text"]
    jsonschema.Draft202012Validator(PARAMETERS).validate(json.loads(text))


POOLING = ("runner", "pooling")


async def test_an_embedding_is_a_vector_of_length_one() -> None:
    async with serving(POOLING) as client:
        body = {"input": ["hello you", "hello", "hello you"]}
        status, document = await client.post("/v1/embeddings", body)
    vectors = [each["embedding"] for each in document["data"]]
    assert status == 200
    assert [len(each) for each in vectors] == [4096] * 3
    assert vectors[0] == vectors[2] != vectors[1]
    assert math.isclose(math.hypot(*vectors[0]), 1, rel_tol=1e-6)
    assert (document["usage"]["prompt_tokens"], document["usage"]["total_tokens"]) == (5, 5)


async def test_an_embedding_comes_as_bytes_in_base64_too() -> None:
    async with serving(POOLING) as client:
        body = {"input": [5, 6], "dimensions": 8}
        _, plain = await client.post("/v1/embeddings", body)
        _, packed = await client.post("/v1/embeddings", body | {"encoding_format": "base64"})
    values = struct.unpack("<8f", base64.b64decode(packed["data"][0]["embedding"]))
    assert values == pytest.approx(plain["data"][0]["embedding"])


@pytest.mark.parametrize(
    "body",
    [{}, {"input": ""}, {"input": []}, {"input": [200_000]}, {"input": "x", "dimensions": 5000}],
)
async def test_a_bad_wish_for_an_embedding_is_refused(body: dict[str, Any]) -> None:
    async with serving(POOLING) as client:
        status, document = await client.post("/v1/embeddings", body)
    assert (status, document["error"]["code"]) == (400, 400)


async def test_a_model_pools_or_generates() -> None:
    async with serving(POOLING) as client:
        assert (await client.post("/v1/chat/completions", CHAT))[0] == 404
    async with serving() as client:
        assert (await client.post("/v1/embeddings", {"input": "x"}))[0] == 404
