"""Tokens with their probabilities, as the router tells them.

No model runs here: a token's log-probability is drawn from its id, and each further candidate is a
step less likely.
"""

import json
from collections.abc import Sequence
from typing import Any

from servelab.engine.text import encoding

_STEP = 0.5
_SPREAD = 997


def logprob(token_id: int) -> float:
    """Between -1 and 0, as exact as an f32 is printed."""
    return -round((1 + token_id * 2_654_435_761 % _SPREAD) / (_SPREAD + 1), 7)


def token(token_id: int, text: str) -> dict[str, Any]:
    """A token of an answer."""
    return {"id": token_id, "text": text, "logprob": logprob(token_id), "special": False}


def likeliest(token_id: int, text: str, count: int) -> list[dict[str, Any]]:
    """The token and those after it in the vocabulary."""
    first = token(token_id, text)
    size = len(encoding.shipped().pieces)
    found = [first]
    for rank in range(1, count):
        other = (token_id + rank) % size
        less = round(first["logprob"] - _STEP * rank, 7)
        found.append(token(other, encoding.decode([other])) | {"logprob": less})
    return found


def prefill(ids: Sequence[int]) -> list[dict[str, Any]]:
    """A prompt's tokens; nothing foretells the first."""
    return [
        {"id": each, "text": encoding.decode([each]), "logprob": logprob(each) if index else None}
        for index, each in enumerate(ids)
    ]


def simple(text: str, ids: Sequence[int]) -> list[dict[str, Any]]:
    """A text's tokens with the bytes they stand at."""
    found: list[dict[str, Any]] = []
    start, size = 0, len(text.encode())
    for each in ids:
        piece = encoding.piece(each)
        stop = min(size, start + len(piece))
        text_of = piece.decode(errors="replace")
        found.append({"id": each, "text": text_of, "start": start, "stop": stop})
        start = stop
    return found


def compact(document: object) -> bytes:
    """JSON as serde_json writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
