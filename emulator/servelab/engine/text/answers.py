"""What answers say: endless words, or a text with an end, token by token."""

import codecs
import json
from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from servelab.engine.text import encoding, pretokens, vocabulary

# Fibonacci hashing: seeds that follow one another lie far apart.
_MIXER = 0x9E3779B97F4A7C15


@mypyc_attr(allow_interpreted_subclasses=True)
class Answer(ABC):
    """A text by token. ``tokens`` is how many it has; None: it never ends."""

    tokens: int | None = None
    head_tokens = 0  # of them, before what it says

    @property
    def said(self) -> "Answer":
        """What it says, without what stands before."""
        return self

    @property
    def period_tokens(self) -> int | None:
        """After how many tokens it says the same again; None: never."""
        return None

    @abstractmethod
    def pieces(self, first: int, count: int) -> list[bytes]:
        """Tokens ``first`` … as UTF-8; a character of several tokens stands at its last."""

    def quoted(self, first: int, count: int) -> list[bytes]:
        """``pieces`` as they stand within a JSON string."""
        return self.pieces(first, count)

    @abstractmethod
    def ids(self, first: int, count: int) -> list[int]:
        """The ids of tokens ``first`` …"""

    def token(self, index: int) -> int:
        """The id of a token."""
        return self.ids(index, 1)[0]

    def text(self, count: int) -> str:
        """The first ``count`` tokens."""
        return b"".join(self.pieces(0, count)).decode()


class Words(Answer):
    """An endless text drawn from a seed, a word a token."""

    __slots__ = ("_start", "_stride")

    def __init__(self, seed: int) -> None:
        mixed = seed * _MIXER % 2**64 >> 32
        size = len(vocabulary.words())
        self._start = mixed % size
        # Odd, so that the walk over the power of two meets every word before one repeats.
        self._stride = 2 * (mixed // size % (size // 2)) + 1

    @property
    def period_tokens(self) -> int:
        return len(vocabulary.words())

    def pieces(self, first: int, count: int) -> list[bytes]:
        """All but token 0 begin with a space."""
        table = vocabulary.following()
        size = len(table)
        index = self._start + first * self._stride
        result = [table[(index + offset * self._stride) % size] for offset in range(count)]
        if first == 0 and result:
            result[0] = result[0][1:]
        return result

    def ids(self, first: int, count: int) -> list[int]:
        table, stride = vocabulary.following_ids(), self._stride
        size = len(table)
        index = self._start + first * stride
        result = [table[(index + offset * stride) % size] for offset in range(count)]
        if first == 0 and result:
            result[0] = vocabulary.first_ids()[self._start]
        return result


class Written(Answer):
    """A given text."""

    __slots__ = ("_ids", "_pieces", "source")

    def __init__(self, text: str) -> None:
        self.source = text
        self._ids = encoding.encode(text)
        decoder = codecs.getincrementaldecoder("utf-8")()
        self._pieces = [decoder.decode(encoding.piece(token)).encode() for token in self._ids]
        if not text:  # the model would say that it is done
            self._ids, self._pieces = [encoding.special(pretokens.MESSAGE_END)], [b""]
        self.tokens = len(self._ids)

    def pieces(self, first: int, count: int) -> list[bytes]:
        return self._pieces[first : first + count]

    def quoted(self, first: int, count: int) -> list[bytes]:
        return [json.dumps(piece.decode())[1:-1].encode() for piece in self.pieces(first, count)]

    def ids(self, first: int, count: int) -> list[int]:
        return self._ids[first : first + count]
