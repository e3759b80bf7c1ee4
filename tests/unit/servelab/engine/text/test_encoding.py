"""The ids are those of Hugging Face's tokenizers on the shipped folder, for any text."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from servelab.engine.text import answers, encoding, pretokens

REFERENCE = Tokenizer.from_str(encoding.folder().joinpath("tokenizer.json").read_text("utf-8"))

PIECES = [piece.decode(errors="ignore") for piece in encoding.shipped().pieces]
texts = st.one_of(
    st.text(max_size=200),
    st.text(st.characters(max_codepoint=0x7F), max_size=200),
    st.text(st.sampled_from(" \t\n\r\x00aZ09.'_\x1f\x85\xa0\u2028"), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from([*pretokens.SPECIALS, "<|", "|>", "im_end", " "])).map("".join),
    st.tuples(st.text(min_size=1, max_size=3), st.integers(1, 5000)).map(
        lambda run: run[0] * run[1]
    ),
)


@given(texts)
@example("don't I'LL we're o'clock'")
@example("été naïve Ärger ещё 日本語 👩‍👩‍👧 \U0010ffff")
@settings(max_examples=600, deadline=None)
def test_ids_are_those_of_the_shipped_file(text: str) -> None:
    assert encoding.encode(text) == REFERENCE.encode(text).ids


@given(texts)
def test_any_text_comes_back_from_its_ids(text: str) -> None:
    assert encoding.decode(encoding.encode(text)) == text


@given(st.lists(st.integers(0, len(PIECES) - 1), max_size=30))
def test_ids_decode_as_the_reference_decodes_them(ids: list[int]) -> None:
    assert encoding.decode(ids) == REFERENCE.decode(ids, skip_special_tokens=False)


def test_every_token_that_is_a_text_is_encoded_as_itself() -> None:
    # Where this holds, merging by rank and merging by listed pair are one and the same.
    assert all(
        encoding.encode(piece.decode()) == [token]
        for token, piece in enumerate(encoding.shipped().pieces)
        if piece.decode(errors="ignore").encode() == piece
    )


def test_names_are_the_reference_s() -> None:
    ids = range(REFERENCE.get_vocab_size())
    assert [encoding.name(token) for token in ids] == [REFERENCE.id_to_token(i) for i in ids]


def test_an_unknown_id_has_neither_name_nor_text() -> None:
    assert (encoding.name(999_999), encoding.piece(999_999), encoding.decode([-1])) == (
        None,
        b"",
        "",
    )


def test_half_a_surrogate_pair_counts_as_a_replacement_character() -> None:
    assert encoding.encode("a\ud800") == encoding.encode("a\ufffd")


@pytest.mark.parametrize("tokens", [1, 2, 3, 17, 500])
def test_a_client_counts_as_many_tokens_as_an_answer_has(tokens: int) -> None:
    rng = random.Random(tokens)
    drawn = [answers.Words(rng.getrandbits(64)) for _ in range(2000 // tokens + 100)]
    counted = REFERENCE.encode_batch([answer.text(tokens) for answer in drawn])
    assert [each.ids for each in counted] == [answer.ids(0, tokens) for answer in drawn]


def test_a_text_of_more_characters_than_all_tokens_could_hold_is_over_any_limit() -> None:
    longest = max(PIECES, key=len)
    assert len(longest) <= encoding.max_token_characters()
    assert encoding.count(longest * 100) == 100
