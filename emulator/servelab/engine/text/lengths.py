"""How long an answer is when the client does not force its length, and where a stop cuts it."""

import math
import random
from typing import NamedTuple

from servelab.engine.calls import Call
from servelab.engine.core.sequences import FinishReason
from servelab.engine.text.answers import Answer

# A chat answer's length is log-normal with the median and spread of the Azure 2023 conversation
# trace (19 366 answers: median 129, mean 211, standard deviation of the logarithm 0.86).
MEDIAN_TOKENS = 129
SIGMA = 0.86
FEWEST_TOKENS = 16


class Ending(NamedTuple):
    """Tokens of an answer and why it ends.

    ``stop_reason`` is the text or token id that stopped it; ``characters`` are what is kept of the
    text then.
    """

    tokens: int
    reason: FinishReason
    stop_reason: str | int | None = None
    characters: int | None = None


def natural_tokens(rng: random.Random) -> int:
    """Tokens after which an answer ends by itself."""
    return max(FEWEST_TOKENS, round(math.exp(rng.gauss(math.log(MEDIAN_TOKENS), SIGMA))))


def ending(call: Call, limit_tokens: int, answer: Answer, rng: random.Random | None) -> Ending:
    """How this answer ends, where it may have so many tokens.

    Without ``rng`` words do not end by themselves; a text that has an end always does.
    """
    end = Ending(limit_tokens, FinishReason.LENGTH)
    natural = answer.tokens
    if natural is None and rng is not None:
        natural = answer.head_tokens + max(natural_tokens(rng), call.min_tokens)
    if natural is not None and natural < limit_tokens:
        end = Ending(natural, FinishReason.STOP)
    if call.stop or call.stop_token_ids:
        return _stopped(call, answer, end)
    return end


def _stopped(call: Call, answer: Answer, end: Ending) -> Ending:
    """The first stop after the fewest tokens cuts the answer, as vLLM looks for it."""
    longest = max(map(len, call.stop), default=0)
    tail, length = "", 0  # the end of the text that a stop may begin in; characters so far
    for index, piece in enumerate(answer.pieces(0, _searched(call, answer, end, longest))):
        text = piece.decode()
        before, length = length, length + len(text)
        tail = (tail[-longest:] if longest else "") + text
        if index < call.min_tokens:
            continue
        token = answer.token(index)
        if token in call.stop_token_ids:
            kept = length if call.include_stop else before
            return Ending(index + 1, FinishReason.STOP, token, kept)
        gone = length - len(tail)
        for stop in call.stop:
            found = tail.find(stop, max(0, before - gone + 1 - len(stop)))
            if found >= 0:
                kept = gone + found + (len(stop) if call.include_stop else 0)
                return Ending(index + 1, FinishReason.STOP, stop, kept)
    return end


def _searched(call: Call, answer: Answer, end: Ending, longest: int) -> int:
    """Tokens to look for a stop in: words say nothing new once they begin again."""
    period = answer.period_tokens
    if period is None:
        return end.tokens
    return min(end.tokens, call.min_tokens + 1 + period + longest)
