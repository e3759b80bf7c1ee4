"""Words are tokens, and counts agree with what a client counts."""

import pytest

from servelab.engine.text import vocabulary


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("  two\n\twords  ", 2),
        ("Hello, world!", 4),
        ("internationalisation", 3),
        ("1234567", 3),
        ("don't", 3),
        ("日本語", 1),
        ("a_b", 3),
    ],
)
def test_count_follows_the_documented_rule(text: str, tokens: int) -> None:
    assert vocabulary.count(text) == tokens == len(vocabulary.encode(text))


def test_every_word_of_the_list_is_one_token() -> None:
    assert len(set(vocabulary.words())) == 2048
    assert all(vocabulary.count(word) == 1 for word in vocabulary.words())


@pytest.mark.parametrize("tokens", [1, 2, 7, 300, 5000])
def test_an_answer_of_n_tokens_counts_n_tokens(tokens: int) -> None:
    assert vocabulary.count(vocabulary.Answer(3).text(tokens)) == tokens


def test_an_answer_is_the_same_in_one_piece_and_in_many() -> None:
    answer = vocabulary.Answer(5)
    pieces = [piece for index in range(40) for piece in answer.pieces(index, 1)]
    assert b"".join(pieces).decode() == answer.text(40)


def test_words_survive_encoding_and_decoding() -> None:
    text = vocabulary.Answer(1).text(20)
    assert vocabulary.decode(vocabulary.encode(text)) == text


def test_a_chat_prompt_counts_its_template() -> None:
    assert (
        vocabulary.count_chat(["hello world"]) == 12 == len(vocabulary.encode_chat(["hello you"]))
    )
