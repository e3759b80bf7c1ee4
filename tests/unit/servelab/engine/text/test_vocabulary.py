"""Words are tokens, and counts agree with what a client counts."""

import pytest

from servelab.engine.text import answers, encoding, vocabulary


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("Please explain the code in this file", 7),
        ("  two\n\twords", 5),
        ("Hello, world!", 4),
        ("1234567", 5),
        ("don't", 2),
        ("日本語", 9),
        ('{"name": "value"}', 6),
        ("<|im_start|>", 1),
    ],
)
def test_a_text_has_as_many_tokens(text: str, tokens: int) -> None:
    assert encoding.count(text) == tokens == len(encoding.encode(text))


def test_every_word_of_the_list_is_one_token_where_it_begins_and_where_it_follows() -> None:
    assert len(set(vocabulary.words())) == 2048
    assert [encoding.encode(word) for word in vocabulary.words()] == [
        [token] for token in vocabulary.first_ids()
    ]
    assert [encoding.encode(f" {word}") for word in vocabulary.words()] == [
        [token] for token in vocabulary.following_ids()
    ]


@pytest.mark.parametrize("tokens", [1, 2, 7, 300, 5000])
def test_an_answer_of_n_tokens_counts_n_tokens(tokens: int) -> None:
    answer = answers.Words(3)
    assert encoding.encode(answer.text(tokens)) == answer.ids(0, tokens)


def test_an_answer_is_the_same_in_one_piece_and_in_many() -> None:
    answer = answers.Words(5)
    pieces = [piece for index in range(40) for piece in answer.pieces(index, 1)]
    assert b"".join(pieces).decode() == answer.text(40)
    assert [answer.token(index) for index in range(40)] == answer.ids(0, 40)


def test_words_survive_encoding_and_decoding() -> None:
    text = answers.Words(1).text(20)
    assert encoding.decode(encoding.encode(text)) == text
