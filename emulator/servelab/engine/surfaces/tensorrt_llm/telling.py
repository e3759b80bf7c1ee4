"""Probabilities of an answer's tokens, as TensorRT-LLM tells them."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.replying import Choice
from servelab.engine.surfaces import likely
from servelab.engine.surfaces.likely import Token
from servelab.engine.text import pretokens


def tokens(choice: Choice, first: int, count: int, top: int = 0) -> list[Token]:
    """Tokens ``first`` … of an answer, with ``top`` candidates each."""
    return likely.tokens(choice, first, count, top, end=pretokens.MESSAGE_END)


def chat_logprobs(told: Sequence[Token]) -> dict[str, Any]:
    """In a chat's shape; candidates only where they were asked for."""
    found = likely.content(told, _entry)
    for each in found["content"]:
        each["top_logprobs"] = each["top_logprobs"] or None
    return found


def _entry(text: str, rank: int) -> dict[str, Any]:
    return {
        "token": text,
        "logprob": likely.logprob(rank),
        "bytes": list(text.encode()),
    }


def text_logprobs(told: Sequence[Token], offset: int) -> dict[str, Any]:
    """In a text completion's shape; ``offset`` is the first token's place in the text."""
    offsets = [offset] if told else []
    for token in told[1:]:
        offsets.append(offsets[-1] + len(token.text))
    return {
        "text_offset": offsets,
        "token_logprobs": [likely.logprob()] * len(told),
        "tokens": [token.text for token in told],
        "top_logprobs": [likely.ranks(token) for token in told],
    }
