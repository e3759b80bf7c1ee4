"""The tokenizer is made from word lists alone, always the same."""

from servelab.engine.text import encoding, training


def test_the_shipped_folder_is_what_training_makes() -> None:
    for name, text in training.documents().items():
        assert encoding.folder().joinpath(name).read_text("utf-8") == text


def test_the_most_frequent_pair_is_merged_first() -> None:
    assert training.train({b"ab": 1, b"cd": 5, b"cda": 5}) == [(99, 100), (257 - 1, 97), (97, 98)]


def test_of_pairs_as_frequent_the_first_by_its_bytes_is_merged() -> None:
    assert training.train({b"zy": 2, b"ab": 2})[0] == (97, 98)


def test_pairs_that_overlap_are_merged_from_the_left() -> None:
    assert training.train({b"aaa": 1}) == [(97, 97), (256, 97)]


def test_a_vocabulary_has_no_more_entries_than_two_to_the_thirteen() -> None:
    merges = training.train(training.weights())
    assert len(merges) + 256 + 3 <= 8192
