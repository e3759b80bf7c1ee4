"""The words answers are made of, one token each, and the rule by which prompts are counted.

The rule: a run of letters is one token for each 8 letters begun, a run of digits one for each 3
begun, any other visible character one; white space none. The words are the 2048 English words of
BIP-39 (python-mnemonic, MIT licence), 3 to 8 letters long, so each of them is one token and an
answer of n tokens is n words.
"""

import functools
import importlib.resources
import random
import re
import zlib
from collections.abc import Iterable, Sequence

_PIECE = re.compile(r"[^\W\d_]{1,8}|\d{1,3}|[^\s\w]|_")

# Ids from here on stand for pieces that are no word of the list.
VOCABULARY_SIZE = 32_768

# Llama 3's chat template: a token at the beginning, five around each message, four that open the
# answer.
TEMPLATE_START_TOKENS = 1
TEMPLATE_MESSAGE_TOKENS = 5
TEMPLATE_ANSWER_TOKENS = 4


@functools.cache
def words() -> tuple[str, ...]:
    """The word list, in order of token id."""
    text = (
        importlib.resources.files("servelab.engine.text").joinpath("words.txt").read_text("ascii")
    )
    return tuple(text.split())


@functools.cache
def _ids() -> dict[str, int]:
    return {word: index for index, word in enumerate(words())}


@functools.cache
def following() -> tuple[bytes, ...]:
    """Each word as it continues a text: a space, then the word."""
    return tuple(b" " + word.encode("ascii") for word in words())


def count(text: str) -> int:
    """Tokens of a text."""
    return len(_PIECE.findall(text))


def count_chat(contents: Iterable[str]) -> int:
    """Tokens of a chat prompt: the messages' contents within the chat template."""
    messages = sum(TEMPLATE_MESSAGE_TOKENS + count(content) for content in contents)
    return TEMPLATE_START_TOKENS + messages + TEMPLATE_ANSWER_TOKENS


def encode(text: str) -> list[int]:
    """Token ids of a text: the word's index, or for other pieces an id above the list's."""
    ids = _ids()
    spare = VOCABULARY_SIZE - len(ids)
    return [
        ids[piece]
        if piece in ids
        else len(ids) + zlib.crc32(piece.encode(errors="replace")) % spare
        for piece in _PIECE.findall(text)
    ]


def encode_chat(contents: Iterable[str]) -> list[int]:
    """Token ids of a chat prompt; the template's own tokens are the last id of the vocabulary."""
    special = VOCABULARY_SIZE - 1
    ids = [special] * TEMPLATE_START_TOKENS
    for content in contents:
        ids += [special] * (TEMPLATE_MESSAGE_TOKENS - 1) + encode(content) + [special]
    return ids + [special] * TEMPLATE_ANSWER_TOKENS


def decode(token_ids: Sequence[int]) -> str:
    """A text for token ids; pieces outside the list cannot be told and read as words of it."""
    table = words()
    return " ".join(table[token % len(table)] for token in token_ids)


class Answer:
    """An endless text drawn from a seed; word ``i`` is token ``i``."""

    __slots__ = ("_start", "_stride")

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self._start = rng.randrange(len(words()))
        # Odd, so that the walk over the power of two meets every word before one repeats.
        self._stride = 2 * rng.randrange(len(words()) // 2) + 1

    def pieces(self, first: int, count: int) -> list[bytes]:
        """Tokens ``first`` … of the text as bytes; all but token 0 begin with a space."""
        table = following()
        size = len(table)
        index = self._start + first * self._stride
        result = [table[(index + offset * self._stride) % size] for offset in range(count)]
        if first == 0 and result:
            result[0] = result[0][1:]
        return result

    def token(self, index: int) -> int:
        """The id of a token."""
        return (self._start + index * self._stride) % len(words())

    def ids(self, first: int, count: int) -> list[int]:
        """The ids of tokens ``first`` …"""
        size, stride = len(words()), self._stride
        index = self._start + first * stride
        return [(index + offset * stride) % size for offset in range(count)]

    def text(self, count: int) -> str:
        """The first ``count`` tokens."""
        return b"".join(self.pieces(0, count)).decode("ascii")
