"""Log-probabilities in the shape of vLLM's answers.

No model runs here: the token is always the likeliest, and each further candidate is a step less
likely.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from servelab.engine.text import vocabulary

_FIRST = -0.25
_STEP = -1.5


def _candidates(token: str, token_id: int, count: int) -> list[tuple[str, float]]:
    """The token and those after it in the word list. ``count`` -1: all of the list."""
    table = vocabulary.following()
    count = len(table) if count < 0 else count
    first = vocabulary.place(token_id)
    others = (table[(first + offset) % len(table)].decode("ascii") for offset in range(len(table)))
    unlike = (text for text in others if text != token)
    texts = [token, *itertools.islice(unlike, max(0, count - 1))]
    return [(text, _FIRST + _STEP * rank) for rank, text in enumerate(texts)]


def chat(tokens: Sequence[tuple[str, int]], top: int) -> dict[str, Any]:
    """Of a chat answer's tokens (text, id), with so many candidates each."""
    content = []
    for text, token_id in tokens:
        ranked = _candidates(text, token_id, top) if top else []
        entry = _entry(text, _FIRST)
        content.append(entry | {"top_logprobs": [_entry(*candidate) for candidate in ranked]})
    return {"content": content}


def _entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def completion(
    tokens: Sequence[tuple[str, int]], top: int, offset: int, *, first_unknown: bool = False
) -> dict[str, Any]:
    """Of a text completion's tokens; ``offset``: characters before them.

    ``first_unknown``: the first is a prompt's, which nothing foretold.
    """
    offsets, values, tops = [], [], []
    for index, (text, token_id) in enumerate(tokens):
        offsets.append(offset)
        offset += len(text)
        unknown = first_unknown and index == 0
        values.append(None if unknown else _FIRST)
        tops.append(None if unknown else dict(_candidates(text, token_id, top or 1)))
    return {
        "text_offset": offsets,
        "token_logprobs": values,
        "tokens": [text for text, _ in tokens],
        "top_logprobs": tops,
    }
