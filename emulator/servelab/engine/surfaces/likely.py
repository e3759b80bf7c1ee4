"""Tokens of an answer with what else they might have been.

No model runs here: the token is always the likeliest, and each further candidate is a step less
likely. Where an answer ends by itself its last token is the end's own, which has no text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.core.sequences import FinishReason
from servelab.engine.replying import Choice
from servelab.engine.text import encoding, pretokens

_FIRST = -0.25
_STEP = -1.5


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its text, and the candidates it was chosen from (itself first)."""

    id: int
    text: str
    candidates: tuple[tuple[int, str], ...] = ()


def logprob(rank: int = 0) -> float:
    """Of the likeliest, or of a candidate after it."""
    return _FIRST + _STEP * rank


def end_token() -> int:
    """The token an answer ends with by itself."""
    return encoding.special(pretokens.MESSAGE_END)


def ended_by_itself(choice: Choice) -> bool:
    """Whether it got to its natural end."""
    return choice.finished is not None and (
        choice.finished.reason == FinishReason.STOP and choice.stop_reason is None
    )


def ends_silently(choice: Choice) -> bool:
    """Whether its last token is the end's own; a text that had to be of a kind ends without."""
    return ended_by_itself(choice) and choice.answer.tokens is None


def text(choice: Choice) -> str:
    """The whole answer."""
    count = choice.sent + choice.pending
    if not ends_silently(choice):
        return choice.text
    return choice.answer.text(max(0, count - 1))


def tokens(choice: Choice, first: int, count: int, top: int = 0, end: str = "") -> list[Token]:
    """Tokens ``first`` … of an answer, with ``top`` candidates each; the end is told as ``end``."""
    ids = choice.answer.ids(first, count)
    pieces = choice.answer.pieces(first, count)
    told = [
        Token(token, piece.decode(), _candidates(choice, first + offset, top))
        for offset, (token, piece) in enumerate(zip(ids, pieces, strict=True))
    ]
    if told and ends_silently(choice) and first + count == choice.sent + choice.pending:
        told[-1] = Token(end_token(), end, told[-1].candidates)
    return told


def content(told: Sequence[Token], entry: Callable[[str, int], dict[str, Any]]) -> dict[str, Any]:
    """In the shape of a chat's log-probabilities; ``entry`` tells a text by its rank."""
    return {
        "content": [
            entry(token.text, 0)
            | {"top_logprobs": [entry(text, rank) for rank, (_, text) in _ranked(token)]}
            for token in told
        ]
    }


def ranks(token: Token) -> dict[str, float]:
    """The candidates of a token by their text."""
    return {text: logprob(rank) for rank, (_, text) in _ranked(token)}


def _ranked(token: Token) -> Iterable[tuple[int, tuple[int, str]]]:
    return enumerate(token.candidates)


def _candidates(choice: Choice, index: int, top: int) -> tuple[tuple[int, str], ...]:
    """The words that follow stand in for what else might have been said."""
    if not top:
        return ()
    ids, pieces = choice.answer.ids(index, top), choice.answer.pieces(index, top)
    return tuple((token, piece.decode()) for token, piece in zip(ids, pieces, strict=True))
