"""What one engine answers over real HTTP on the loopback."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

Serve = Callable[..., AbstractAsyncContextManager[Any]]

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


async def test_a_chat_answer_has_the_words_it_counts(running: Serve) -> None:
    async with running() as engine:
        status, body = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 5})
    choice = body["choices"][0]
    assert (status, choice["finish_reason"], body["usage"]["completion_tokens"]) == (
        200,
        "length",
        5,
    )
    assert len(choice["message"]["content"].split()) == 5


async def test_an_unforced_answer_ends_by_itself(running: Serve) -> None:
    async with running(0.0001) as engine:
        _, body = await engine.post("/v1/chat/completions", CHAT)
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_a_stream_is_role_then_tokens_then_reason_then_usage_then_done(
    running: Serve,
) -> None:
    body = CHAT | {"max_tokens": 4, "stream": True, "stream_options": {"include_usage": True}}
    async with running() as engine:
        *events, usage, done = await engine.events("/v1/chat/completions", body)
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert all(set(delta) == {"content"} for delta in deltas[1:])
    assert [event["choices"][0]["finish_reason"] for event in events] == [*[None] * 4, "length"]
    assert (usage["choices"], usage["usage"]["completion_tokens"], done) == ([], 4, "[DONE]")


async def test_streamed_and_whole_text_are_the_same_for_the_same_seed(running: Serve) -> None:
    body = CHAT | {"max_tokens": 30, "seed": 4}
    async with running() as engine:
        _, whole = await engine.post("/v1/chat/completions", body)
        events = await engine.events("/v1/chat/completions", body | {"stream": True})
    text = "".join(event["choices"][0]["delta"]["content"] for event in events[:-1])
    assert text == whole["choices"][0]["message"]["content"]


async def test_a_text_completion_streams_each_prompt_as_its_own_choice(running: Serve) -> None:
    body = {"model": "m", "prompt": ["hello", "you"], "max_tokens": 3, "stream": True}
    async with running() as engine:
        *events, _ = await engine.events("/v1/completions", body)
    indexes = [event["choices"][0]["index"] for event in events]
    assert sorted(indexes) == [0, 0, 0, 1, 1, 1]


async def test_n_answers_count_the_prompt_once(running: Serve) -> None:
    async with running() as engine:
        _, one = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 5})
        _, two = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 5, "n": 2})
    assert two["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    assert two["usage"]["completion_tokens"] == 10


async def test_a_stop_text_ends_the_answer_before_it(running: Serve) -> None:
    body = CHAT | {"max_tokens": 30, "seed": 4}
    async with running() as engine:
        _, whole = await engine.post("/v1/chat/completions", body)
        words = whole["choices"][0]["message"]["content"].split()
        _, cut = await engine.post("/v1/chat/completions", body | {"stop": f" {words[5]}"})
    (choice,) = cut["choices"]
    assert choice["message"]["content"] == " ".join(words[:5])
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", f" {words[5]}")
    assert cut["usage"]["completion_tokens"] == 6


async def test_a_stream_holds_back_what_may_belong_to_a_stop(running: Serve) -> None:
    body = CHAT | {"max_tokens": 30, "seed": 4, "stop": ["e", "sing a song"]}
    async with running() as engine:
        _, whole = await engine.post("/v1/chat/completions", body)
        events = await engine.events("/v1/chat/completions", body | {"stream": True})
    choices = [event["choices"][0] for event in events[:-1]]
    text = "".join(choice["delta"]["content"] for choice in choices)
    assert text == whole["choices"][0]["message"]["content"]
    assert choices[-1]["stop_reason"] == "e"


async def test_several_choices_are_streamed_in_turns(running: Serve) -> None:
    body = CHAT | {"max_tokens": 3, "stream": True, "n": 2}
    async with running() as engine:
        *events, _ = await engine.events("/v1/chat/completions", body)
    assert [event["choices"][0]["index"] for event in events] == [0, 1] * 4


async def test_log_probabilities_come_with_every_token(running: Serve) -> None:
    body = CHAT | {"max_tokens": 3, "logprobs": True, "top_logprobs": 2}
    async with running() as engine:
        _, answer = await engine.post("/v1/chat/completions", body)
    content = answer["choices"][0]["logprobs"]["content"]
    assert [len(token["top_logprobs"]) for token in content] == [2, 2, 2]
    text = "".join(token["token"] for token in content)
    assert text == answer["choices"][0]["message"]["content"]


async def test_the_offsets_of_an_echo_count_from_its_beginning(running: Serve) -> None:
    body = {"model": "m", "prompt": "hello you", "max_tokens": 2, "echo": True, "logprobs": 1}
    async with running() as engine:
        _, answer = await engine.post("/v1/completions", body)
        *events, _ = await engine.events("/v1/completions", body | {"stream": True})
    told = answer["choices"][0]["logprobs"]
    assert (len(told["tokens"]), told["text_offset"][0], told["token_logprobs"][0]) == (4, 0, None)
    offsets = [
        offset for each in events for offset in each["choices"][0]["logprobs"]["text_offset"]
    ]
    assert (len(offsets), offsets) == (4, sorted(offsets))


async def test_a_refusal_from_within_comes_as_an_event_of_a_stream(running: Serve) -> None:
    body = CHAT | {"stream": True, "logprobs": True, "top_logprobs": 21}
    async with running() as engine:
        error, done = await engine.events("/v1/chat/completions", body)
    assert (error["error"]["param"], done) == ("logprobs", "[DONE]")


async def test_messages_are_answered_in_anthropics_shape(running: Serve) -> None:
    body = CHAT | {"max_tokens": 4}
    async with running() as engine:
        _, answer = await engine.post("/v1/messages", body)
        status, refused = await engine.post("/v1/messages", body | {"model": "other"})
        async with engine.http.post("/v1/messages", json=body | {"stream": True}) as response:
            names = re.findall(r"^event: (\w+)$", await response.text(), re.MULTILINE)
    assert (answer["stop_reason"], answer["usage"]["output_tokens"]) == ("max_tokens", 4)
    assert (status, refused["type"], refused["error"]["type"]) == (404, "error", "not_found_error")
    deltas = ["content_block_start", *["content_block_delta"] * 4, "content_block_stop"]
    assert names == ["message_start", *deltas, "message_delta", "message_stop"]


async def test_a_response_is_told_whole_and_as_events(running: Serve) -> None:
    body = {"input": "hello", "max_output_tokens": 3}
    async with running() as engine:
        _, answer = await engine.post("/v1/responses", body)
        async with engine.http.post("/v1/responses", json=body | {"stream": True}) as response:
            names = re.findall(r"^event: (\S+)$", await response.text(), re.MULTILINE)
    assert (answer["status"], answer["usage"]["output_tokens"]) == ("incomplete", 3)
    assert (names[0], names.count("response.output_text.delta"), names[-1]) == (
        "response.created",
        3,
        "response.incomplete",
    )


async def test_of_many_written_answers_some_repeat(running: Serve) -> None:
    wish = {"structured_outputs": {"regex": "[a-z]{30}"}, "n": 40, "max_tokens": 50}
    async with running(0.0001, slots=40) as engine:
        _, body = await engine.post("/v1/chat/completions", CHAT | wish)
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert (len(texts), len(set(texts))) == (40, 16)
