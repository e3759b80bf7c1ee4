"""TensorRT-LLM's answers in the making: stops, natural ends, several prompts."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.core.sequences import Finish, FinishReason
from servelab.engine.replying import Choice
from servelab.engine.text.answers import Words
from servelab.engine.text.lengths import Ending

Hosted = Callable[..., Any]
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TEXT = {"model": "m", "prompt": "hi"}
WORDS = [piece.decode() for piece in Words(1).pieces(0, 3)]


def finish(reason: FinishReason, count: int) -> Finish:
    return Finish("a", reason, 2.0, 0.0, 0.1, 0.5, 2.0, 3, count, 0)


def answer(hosted: Hosted, body: dict[str, Any], ending: Ending, steps: int = 3) -> Any:
    """The exchange of an answer that came one token at a time."""
    host = hosted(EngineType.TENSORRT_LLM)
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    exchange = host.ask("POST", path, body)
    reply = host.replies[-1]
    prompts = reply.call.prompts
    reply.add([Choice(reply, Words(1), prompt, ending) for prompt in prompts])
    reply.open(exchange)
    for step in range(steps):
        for choice in reply.choices:
            choice.tokens(1)
            if step == steps - 1:
                choice.finish(finish(ending.reason, steps))
        reply.flush()
    assert exchange.ended
    return exchange


def text_of(document: dict[str, Any]) -> str:
    choice = document["choices"][0]
    told: str = choice["text"] if "text" in choice else choice["message"]["content"]
    return told


@pytest.mark.parametrize("body", [CHAT, TEXT])
def test_the_end_of_its_own_has_no_text(hosted: Hosted, body: dict[str, Any]) -> None:
    document = answer(hosted, body, Ending(3, FinishReason.STOP)).document
    assert text_of(document) == WORDS[0] + WORDS[1]
    assert document["choices"][0]["finish_reason"] == "stop"
    assert document["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("body", [CHAT, TEXT])
def test_a_stop_is_cut_and_named(hosted: Hosted, body: dict[str, Any]) -> None:
    ending = Ending(3, FinishReason.STOP, WORDS[2], len(WORDS[0] + WORDS[1]))
    document = answer(hosted, body | {"stop": WORDS[2]}, ending).document
    assert text_of(document) == WORDS[0] + WORDS[1]
    assert document["choices"][0]["stop_reason"] == WORDS[2]


@pytest.mark.parametrize("extra", [{}, {"stop": "zzz"}, {"logprobs": True}])
def test_a_chat_streams_what_it_would_say_whole(hosted: Hosted, extra: dict[str, Any]) -> None:
    body = CHAT | {"stream": True} | extra
    events = answer(hosted, body, Ending(3, FinishReason.STOP)).events
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    assert deltas[0] == {"role": "assistant"}
    assert "".join(delta["content"] for delta in deltas[1:]) == WORDS[0] + WORDS[1]
    assert (events[-2]["choices"][0]["finish_reason"], events[-1]) == ("stop", "[DONE]")


def test_the_event_of_the_role_ends_with_a_blank(hosted: Hosted) -> None:
    body = answer(hosted, CHAT | {"stream": True}, Ending(3, FinishReason.LENGTH)).body
    blanks = [block.endswith(b" ") for block in body.split(b"\n\n")[:-1]]
    assert blanks == [True, False, False, False, False]


def test_an_echoed_message_goes_before_the_answer(hosted: Hosted) -> None:
    said = [*CHAT["messages"], {"role": "assistant", "content": "so"}]
    body = CHAT | {"messages": said, "echo": True}
    ending = Ending(3, FinishReason.LENGTH)
    assert text_of(answer(hosted, body, ending).document) == "so" + "".join(WORDS)
    events = answer(hosted, body | {"stream": True}, ending).events
    assert events[1]["choices"][0]["delta"] == {"content": "so"}


def test_prompts_share_a_name_and_have_each_its_usage(hosted: Hosted) -> None:
    body = TEXT | {"prompt": ["a", "b"], "stream": True, "stream_options": {}}
    events = answer(hosted, body, Ending(3, FinishReason.LENGTH)).events
    assert {event["id"] for event in events[:-1]} == {"cmpl-" + "0" * 32}
    usages = [event["usage"] for event in events[:-1] if not event["choices"]]
    assert [usage["completion_tokens"] for usage in usages] == [3, 3]


def test_probabilities_tell_places_in_the_text(hosted: Hosted) -> None:
    body = TEXT | {"logprobs": 1}
    ending = Ending(3, FinishReason.LENGTH)
    whole = answer(hosted, body, ending).document["choices"][0]["logprobs"]
    assert whole["text_offset"][0] == 0
    assert whole["tokens"] == WORDS
    events = answer(hosted, body | {"stream": True}, ending).events[:-1]
    offsets = [event["choices"][0]["logprobs"]["text_offset"] for event in events]
    assert offsets == [[0], [len(WORDS[0])], [len(WORDS[0] + WORDS[1])]]


@pytest.mark.parametrize("body", [CHAT, TEXT, TEXT | {"detokenize": False}])
def test_an_answer_cut_before_its_first_token_ends(hosted: Hosted, body: dict[str, Any]) -> None:
    host = hosted(EngineType.TENSORRT_LLM)
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    exchange = host.ask("POST", path, body | {"stream": True})
    reply = host.replies[-1]
    choice = Choice(reply, Words(1), reply.call.prompts[0], Ending(3, FinishReason.LENGTH))
    reply.add([choice])
    reply.open(exchange)
    choice.finish(finish(FinishReason.ABORT, 0))
    reply.flush()
    assert exchange.ended
    assert exchange.events[-2]["choices"][0]["finish_reason"] == "abort"
