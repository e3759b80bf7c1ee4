"""Where an answer ends, by itself or at a stop."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine import calls
from servelab.engine.core.sequences import FinishReason
from servelab.engine.text import lengths
from servelab.engine.text.answers import Answer, Words

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


def test_a_stop_that_never_comes_is_looked_for_in_one_round_of_the_words() -> None:
    asked: list[int] = []
    answer = _Counting(7, asked)
    call = calls.Call(True, PROMPT, stop=("no such word",))
    end = lengths.ending(call, 1_000_000, answer, None)
    assert end == lengths.Ending(1_000_000, FinishReason.LENGTH)
    assert max(asked) < 3000


class _Counting(Answer):
    """Words that note how many were asked for."""

    def __init__(self, seed: int, asked: list[int]) -> None:
        self.words = Words(seed)
        self.asked = asked

    @property
    def period_tokens(self) -> int | None:
        return self.words.period_tokens

    def pieces(self, first: int, count: int) -> list[bytes]:
        self.asked.append(count)
        return self.words.pieces(first, count)

    def ids(self, first: int, count: int) -> list[int]:
        return self.words.ids(first, count)


@given(st.integers(0, 99), st.integers(1, 5000), st.integers(1, 12), st.integers(0, 3000))
def test_a_stop_is_found_where_it_first_stands(
    seed: int, place: int, length: int, low: int
) -> None:
    answer = Words(seed)
    whole = answer.text(6000)
    stop = whole[place : place + length]
    call = calls.Call(True, PROMPT, stop=(stop,), min_tokens=low)
    end = lengths.ending(call, 6000, answer, None)
    fewest = len(answer.text(low)) - length + 1
    assert end.characters == whole.index(stop, max(0, fewest))
