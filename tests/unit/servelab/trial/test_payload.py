"""Requests carry exactly the lengths of the trace, by the engine's own count."""

import json

from hypothesis import given
from hypothesis import strategies as st

from servelab.engine import calls
from servelab.engine.surfaces.vllm import protocol
from servelab.trial import payload
from servelab.workload import arrivals


def parsed(request: payload.Request) -> calls.Call:
    served = calls.Served("m", 8192)
    return protocol.parse_chat(
        request.content.partition(b"\r\n\r\n")[2], "application/json", served
    )


@given(st.integers(payload.TEMPLATE_TOKENS + 1, 3000), st.integers(1, 2000), st.integers(0, 99))
def test_the_engine_counts_the_tokens_that_were_asked_for(
    prompt: int, answer: int, seed: int
) -> None:
    request = payload.streamed_chat("m", "h:1", arrivals.Arrival(1.5, prompt, answer), seed)
    call = parsed(request)
    assert (call.prompts[0].tokens, call.max_tokens, call.ignore_eos) == (prompt, answer, True)
    assert (request.at_s, request.answer_tokens) == (1.5, answer)


def test_a_prompt_shorter_than_the_template_becomes_one_word() -> None:
    request = payload.streamed_chat("m", "h:1", arrivals.Arrival(0.0, 3, 1), 0)
    assert parsed(request).prompts[0].tokens == payload.TEMPLATE_TOKENS + 1


def test_the_head_tells_the_length_of_the_body() -> None:
    head, _, body = payload.streamed_chat(
        "m", "h:1", arrivals.Arrival(0.0, 30, 4), 0
    ).content.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert json.loads(body)["model"] == "m"
