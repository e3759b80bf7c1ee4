"""Large requests: read in a shorter way, and told the same as small ones."""

import json
from typing import Any

import pytest

from servelab.engine.calls import Call, Served
from servelab.engine.surfaces.vllm import prompting, protocol, reading, refusals

SERVED = Served("m", 8192)
MANY = list(range(prompting.MANY_IDS + 1))


def parsed(prompt: Any, **more: Any) -> Call:
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": 1, **more}).encode()
    return protocol.parse_completion(body, "application/json", SERVED)


def refused(raw: bytes) -> tuple[str, str | None]:
    with pytest.raises(refusals.Refusal) as caught:
        protocol.parse_completion(raw, "application/json", SERVED)
    return str(caught.value), caught.value.param


def test_many_token_ids_are_the_prompt() -> None:
    (prompt,) = parsed(MANY).prompts
    assert (prompt.tokens, list(prompt.ids)) == (len(MANY), MANY)


def test_several_prompts_of_many_token_ids_stay_apart() -> None:
    assert [list(each.ids) for each in parsed([MANY, MANY[::-1]]).prompts] == [MANY, MANY[::-1]]


def test_the_text_of_token_ids_is_there_where_it_is_echoed() -> None:
    (silent,), (echoed,) = parsed(MANY).prompts, parsed(MANY, echo=True).prompts
    assert (silent.text, bool(echoed.text)) == ("", True)


@pytest.mark.parametrize("wrong", [-1, 1.5, "a", None, [1]])
@pytest.mark.parametrize("nested", [False, True])
def test_one_wrong_id_among_many_is_found(wrong: object, nested: bool) -> None:
    ids = [*MANY, wrong]
    _, param = refused(
        json.dumps({"model": "m", "prompt": [MANY, ids] if nested else ids}).encode()
    )
    assert param is not None
    assert param.removeprefix("body.").startswith("prompt")


def test_too_many_ids_are_refused_by_their_number() -> None:
    assert "takes 9000 tokens" in refused(json.dumps({"prompt": [1] * 9000}).encode())[0]


BLANKS = b" " * (reading.LARGE_BYTES + 1)


@pytest.mark.parametrize(
    "raw",
    [b'{"prompt": "a\n"}', b"\xff", b'{"a": 01}', b"[" * 2000, b'"\\ud800"', b"1"],
    ids=repr,
)
def test_a_large_body_that_is_wrong_is_told_the_same_as_a_small_one(raw: bytes) -> None:
    assert refused(raw + BLANKS) == refused(raw)


@pytest.mark.parametrize(
    "raw", [b'{"prompt": "a", "user": "\\ud800"}', b'{"prompt": "a", "b": NaN}']
)
def test_what_only_one_reader_of_json_takes_is_taken(raw: bytes) -> None:
    assert protocol.parse_completion(raw + BLANKS, "application/json", SERVED).prompts[0].tokens
