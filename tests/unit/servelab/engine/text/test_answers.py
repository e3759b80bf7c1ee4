"""Answers token by token."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.text import answers, encoding


@given(st.text(max_size=60))
def test_the_pieces_of_a_written_answer_are_its_text(text: str) -> None:
    answer = answers.Written(text)
    pieces = [piece for i in range(answer.tokens or 0) for piece in answer.pieces(i, 1)]
    assert b"".join(pieces) == text.encode()
    assert all(piece.decode() is not None for piece in pieces)


@given(st.text(max_size=60))
def test_quoted_pieces_stand_within_a_json_string(text: str) -> None:
    answer = answers.Written(text)
    quoted = b"".join(answer.quoted(0, answer.tokens or 0))
    assert json.loads(b'"' + quoted + b'"') == text


@given(st.text(min_size=1, max_size=60))
def test_a_written_answer_has_the_ids_of_its_text(text: str) -> None:
    answer = answers.Written(text)
    assert answer.ids(0, answer.tokens or 0) == encoding.encode(text)


def test_an_empty_answer_is_one_token_without_text() -> None:
    answer = answers.Written("")
    assert (answer.tokens, answer.pieces(0, 1)) == (1, [b""])


def test_a_character_of_several_tokens_stands_at_its_last() -> None:
    pieces = answers.Written("語").pieces(0, 3)
    assert pieces == [b"", b"", "語".encode()]


@pytest.mark.parametrize("first", [0, 1, 7])
def test_words_need_no_quoting(first: int) -> None:
    answer = answers.Words(3)
    assert answer.quoted(first, 5) == answer.pieces(first, 5)
    assert answer.tokens is None
