"""Where an answer ends, by itself or at a stop."""

import random

import pytest

from servelab.engine import calls
from servelab.engine.core.sequences import FinishReason
from servelab.engine.text import lengths
from servelab.engine.text.answers import Words

PROMPT = (calls.Prompt(3),)
ANSWER = Words(7)


def ending(limit: int = 50, *, by_itself: bool = False, **wishes: object) -> lengths.Ending:
    call = calls.Call(True, PROMPT, **wishes)  # type: ignore[arg-type]
    return lengths.ending(call, limit, ANSWER, random.Random(1) if by_itself else None)


def test_an_answer_that_does_not_end_by_itself_ends_at_its_limit() -> None:
    assert ending() == lengths.Ending(50, FinishReason.LENGTH)


def test_an_answer_that_ends_by_itself_has_no_stop_reason() -> None:
    end = ending(5000, by_itself=True)
    assert (end.reason, end.stop_reason) == (FinishReason.STOP, None)


def test_a_stop_id_is_counted_and_not_told() -> None:
    token = ANSWER.token(4)
    end = ending(stop_token_ids=frozenset({token}))
    assert end == lengths.Ending(5, FinishReason.STOP, token, len(ANSWER.text(4)))


def test_a_stop_across_tokens_is_found() -> None:
    text = ANSWER.text(6)
    place = text.rindex(" ")
    end = ending(stop=(text[place - 1 : place + 2],))
    assert (end.tokens, end.characters) == (6, place - 1)


def test_a_stop_may_be_kept_in_the_text() -> None:
    stop = ANSWER.text(3)[-2:]
    end = ending(stop=(stop,), include_stop=True)
    assert end.characters is not None
    assert ANSWER.text(end.tokens)[: end.characters].endswith(stop)


@pytest.mark.parametrize("fewest", [0, 10, 20])
def test_no_stop_counts_before_the_fewest_tokens(fewest: int) -> None:
    assert ending(stop=(" ", "e"), min_tokens=fewest).tokens > fewest
