"""SGLang's answers in the making: stops, natural ends, names."""

from collections.abc import Callable
from typing import Any

from modelserve.api.spec import EngineType
from servelab.engine.core.sequences import Finish, FinishReason
from servelab.engine.replying import Choice
from servelab.engine.surfaces import likely
from servelab.engine.text.answers import Words
from servelab.engine.text.lengths import Ending

Hosted = Callable[..., Any]


def finish(reason: FinishReason, count: int) -> Finish:
    return Finish("a", reason, 2.0, 0.0, 0.1, 0.5, 2.0, 3, count, 0)


def opened(host: Any, path: str, body: dict[str, Any], ending: Ending) -> tuple[Any, Any, Choice]:
    """The exchange of a request, its reply, and its choice, once the core has taken it."""
    exchange = host.ask("POST", path, body)
    reply = host.replies[-1]
    choice = Choice(reply, Words(1), reply.call.prompts[0], ending)
    reply.add([choice])
    reply.open(exchange)
    return exchange, reply, choice


def stream(host: Any, ending: Ending, steps: int, **body: Any) -> list[Any]:
    """The events of a stream told one token at a time."""
    asked = {"prompt": "hi", "stream": True} | body
    exchange, reply, choice = opened(host, "/v1/completions", asked, ending)
    for step in range(steps):
        choice.tokens(1)
        if step == steps - 1:
            choice.finish(finish(ending.reason, steps))
        reply.flush()
    events: list[Any] = exchange.events
    return events


def test_what_may_begin_a_stop_is_kept_back(hosted: Hosted) -> None:
    words = [piece.decode() for piece in Words(1).pieces(0, 3)]
    stop = words[1] + words[2]
    ending = Ending(3, FinishReason.STOP, stop, len(words[0]))
    events = stream(hosted(EngineType.SGLANG), ending, 3, stop=stop)
    texts = [each["choices"][0]["text"] for each in events[:-1]]
    assert texts == [words[0], ""]
    assert events[-2]["choices"][0]["matched_stop"] == stop


def test_what_was_no_stop_after_all_comes_in_one_piece(hosted: Hosted) -> None:
    words = [piece.decode() for piece in Words(1).pieces(0, 3)]
    ending = Ending(3, FinishReason.LENGTH)
    events = stream(hosted(EngineType.SGLANG), ending, 3, stop=words[1] + "!")
    texts = [each["choices"][0]["text"] for each in events[:-1]]
    assert texts == [words[0], words[1] + words[2]]


def test_a_natural_end_is_a_token_without_text(hosted: Hosted) -> None:
    events = stream(hosted(EngineType.SGLANG), Ending(2, FinishReason.STOP), 2)
    last = events[-2]["choices"][0]
    assert (last["text"], last["finish_reason"]) == ("", "stop")
    assert last["matched_stop"] == likely.end_token()


def test_a_chat_ends_with_an_event_of_its_own(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    ending = Ending(1, FinishReason.LENGTH)
    exchange, reply, choice = opened(host, "/v1/chat/completions", body, ending)
    choice.tokens(1)
    choice.finish(finish(FinishReason.LENGTH, 1))
    reply.flush()
    deltas = [each["choices"][0]["delta"] for each in exchange.events[:-1]]
    assert [sorted(delta) for delta in deltas] == [
        ["content", "reasoning_content", "role"],
        ["content", "reasoning_content"],
        ["reasoning_content"],
    ]


def test_a_client_may_name_its_request(hosted: Hosted) -> None:
    ending = Ending(1, FinishReason.LENGTH)
    events = stream(hosted(EngineType.SGLANG), ending, 1, rid="mine")
    assert events[0]["id"] == "mine"
