"""Answers before which a model thinks: how long, and what of the text is thought and what said."""

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from servelab.engine.text import answers
from servelab.engine.text.answers import Answer, Written

# Thoughts on everyday questions take some hundred tokens (those on mathematics some thousand): an
# assumption, as published traces do not tell thoughts from answers.
MEDIAN_TOKENS = 300
SIGMA = 0.86
FEWEST_TOKENS = 16


def natural_tokens(rng: random.Random) -> int:
    """Tokens of thoughts before an answer."""
    return max(FEWEST_TOKENS, round(math.exp(rng.gauss(math.log(MEDIAN_TOKENS), SIGMA))))


class Thinks(NamedTuple):
    """That a model thinks before it speaks: the marks around it, and whether they are counted.

    ``tokens``: at most so many. ``told``: the client wants to know.
    """

    marks: tuple[str, str]
    counted: bool
    tokens: int | None = None
    told: bool = True

    def before(self, answer: Answer, seed: int) -> "Thinking":
        """The answer with thoughts before it."""
        rng = random.Random(seed)
        tokens = natural_tokens(rng)
        tokens = tokens if self.tokens is None else min(tokens, self.tokens)
        return Thinking(answers.Words(rng.getrandbits(32)), tokens, self.marks, answer)


class Thinking(Answer):
    """Thoughts between marks, then what is said. Of the marks the first may be empty."""

    def __init__(
        self, thought: Answer, thought_tokens: int, marks: tuple[str, str], said: Answer
    ) -> None:
        self.thought_tokens = thought_tokens
        self._said = said
        opening, closing = (Written(mark) if mark else None for mark in marks)
        rows = [(opening, opening and opening.tokens), (thought, thought_tokens)]
        rows.append((closing, closing and closing.tokens))
        self._rows = [(part, tokens or 0) for part, tokens in rows if part is not None]
        self.head_tokens = sum(tokens for _, tokens in self._rows)
        self.tokens = None if said.tokens is None else self.head_tokens + said.tokens
        begins = len(marks[0])
        self._thought_at = begins, begins + len(thought.text(thought_tokens))
        self._said_at = self._thought_at[1] + len(marks[1])

    @property
    def said(self) -> Answer:
        return self._said

    def split(self, text: str, told: int = 0) -> tuple[str, str]:
        """What of a text that begins ``told`` characters into the answer is thought, and said."""
        begins, ends = (max(0, place - told) for place in self._thought_at)
        return text[begins:ends], text[max(0, self._said_at - told) :]

    def pieces(self, first: int, count: int) -> list[bytes]:
        return [piece for part, at, n in self._spans(first, count) for piece in part.pieces(at, n)]

    def quoted(self, first: int, count: int) -> list[bytes]:
        return [piece for part, at, n in self._spans(first, count) for piece in part.quoted(at, n)]

    def ids(self, first: int, count: int) -> list[int]:
        return [token for part, at, n in self._spans(first, count) for token in part.ids(at, n)]

    def _spans(self, first: int, count: int) -> Iterator[tuple[Answer, int, int]]:
        """The parts that tokens ``first`` … lie in, each with its first token and how many."""
        for part, tokens in self._rows:
            taken = max(0, min(tokens - first, count))
            if taken:
                yield part, first, taken
            first, count = max(0, first - tokens), count - taken
        if count:
            yield self._said, first, count
