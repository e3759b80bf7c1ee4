"""Answers before which a model thinks."""

import random

import pytest

from servelab.engine.text import answers, thoughts


def thinking(marks: tuple[str, str] = ("<think>", "</think>")) -> thoughts.Thinking:
    return thoughts.Thinking(answers.Words(1), 5, marks, answers.Written("It is so."))


@pytest.mark.parametrize("marks", [("<think>", "</think>"), ("", "</think>")])
def test_thoughts_stand_between_marks_before_what_is_said(marks: tuple[str, str]) -> None:
    answer = thinking(marks)
    text = answer.text(answer.tokens or 0)
    thought, said = answer.split(text)
    assert (said, text) == ("It is so.", marks[0] + thought + marks[1] + said)
    assert len(thought.split()) == 5


def test_a_text_can_be_split_piece_by_piece() -> None:
    answer = thinking()
    told, parts = 0, []
    for piece in answer.pieces(0, answer.tokens or 0):
        parts.append(answer.split(piece.decode(), told))
        told += len(piece.decode())
    whole = answer.split(answer.text(answer.tokens or 0))
    assert ("".join(part[0] for part in parts), "".join(part[1] for part in parts)) == whole


def test_tokens_are_those_of_all_parts() -> None:
    answer = thinking()
    assert answer.tokens == answer.head_tokens + (answer.said.tokens or 0)
    assert (
        len(answer.ids(0, answer.tokens)) == len(answer.pieces(0, answer.tokens)) == answer.tokens
    )
    assert answer.ids(3, 4) == answer.ids(0, 7)[3:]


def test_a_budget_bounds_the_thoughts() -> None:
    thinks = thoughts.Thinks(("", "</think>"), counted=False, tokens=3)
    assert thinks.before(answers.Words(2), 7).thought_tokens == 3


def test_thoughts_are_of_some_length() -> None:
    lengths = [thoughts.natural_tokens(random.Random(seed)) for seed in range(2000)]
    assert sorted(lengths)[1000] == pytest.approx(thoughts.MEDIAN_TOKENS, rel=0.1)
