"""How long an answer is when the client does not force its length."""

import math
import random

from servelab.engine.protocol import Call
from servelab.engine.sequences import FinishReason

# A chat answer's length is log-normal with the median and spread of the Azure 2023 conversation
# trace (19 366 answers: median 129, mean 211, standard deviation of the logarithm 0.86).
MEDIAN_TOKENS = 129
SIGMA = 0.86
FEWEST_TOKENS = 16


def natural_tokens(rng: random.Random) -> int:
    """Tokens after which an answer ends by itself."""
    return max(FEWEST_TOKENS, round(math.exp(rng.gauss(math.log(MEDIAN_TOKENS), SIGMA))))


def answer(call: Call, room_tokens: int, rng: random.Random) -> tuple[int, FinishReason]:
    """Tokens of an answer and why it ends, where the model's length leaves so much room."""
    limit = room_tokens if call.max_tokens is None else min(call.max_tokens, room_tokens)
    if call.ignore_eos:
        return limit, FinishReason.LENGTH
    natural = max(natural_tokens(rng), call.min_tokens)
    if natural < limit:
        return natural, FinishReason.STOP
    return limit, FinishReason.LENGTH
