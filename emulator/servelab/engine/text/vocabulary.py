"""The words answers are made of, one token each.

They are the 2048 English words of BIP-39 (python-mnemonic, words.LICENSE), 3 to 8 letters long. The
tokenizer was trained until each of them is one token, at the start of a text and after a space.
"""

import functools
import importlib.resources

from servelab.engine.text import encoding

# Llama 3's: the vocabulary of a model may be larger than its tokenizer's.
VOCABULARY_SIZE = 128_256


@functools.cache
def words() -> tuple[str, ...]:
    """The word list, in its order."""
    text = (
        importlib.resources.files("servelab.engine.text").joinpath("words.txt").read_text("ascii")
    )
    return tuple(text.split())


@functools.cache
def following() -> tuple[bytes, ...]:
    """Each word as it continues a text: a space, then the word."""
    return tuple(b" " + word.encode("ascii") for word in words())


@functools.cache
def following_ids() -> tuple[int, ...]:
    """The token ids of ``following``."""
    ids = {piece: token for token, piece in enumerate(encoding.shipped().pieces)}
    return tuple(ids[piece] for piece in following())


@functools.cache
def first_ids() -> tuple[int, ...]:
    """The token id of each word where it begins a text."""
    ids = {piece: token for token, piece in enumerate(encoding.shipped().pieces)}
    return tuple(ids[word.encode("ascii")] for word in words())


@functools.cache
def _places() -> dict[int, int]:
    return {
        token: place for ids in (first_ids(), following_ids()) for place, token in enumerate(ids)
    }


def place(token: int) -> int:
    """A word's place in the list by its token id; 0 for tokens that are no word of it."""
    return _places().get(token, 0)
