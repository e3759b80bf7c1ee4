"""How each publisher measured, where more is known than the point itself says.

From the texts under ``sources`` in ``points.yaml``. A source that is not here: all requests have
the stated lengths.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

# Requests of an open-loop run that does not say how many.
ONLINE_REQUESTS = 300
# A closed loop sends so many requests per client (InferenceMAX: concurrency times ten).
REQUESTS_PER_CLIENT = 10
# Spread of chat prompts: quartiles 120, 280, 580 and a 99th percentile of 2100 tokens.
CHAT_SIGMA = 1.0
CHAT_PROMPT_LIMIT = 8.0  # times the median
# Answers with a median of 310 tokens, cut at 512; their spread below that is not published.
CHAT_ANSWER_SIGMA = 0.6
CHAT_ANSWER_LIMIT = 512 / 310
# Prompts from here on are a suite of one fixed length.
LONG_PROMPT_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Conditions:
    """``shortest`` is a share of the stated length from which on lengths are uniform."""

    shortest: float = 1.0
    chat: bool = False

    def lengths(
        self, input_tokens: int, output_tokens: int, count: int, rng: random.Random
    ) -> list[tuple[int, int]]:
        """Prompt and answer tokens of ``count`` requests."""
        prompt, answer = max(1, input_tokens), max(1, output_tokens)
        if self.chat and prompt < LONG_PROMPT_TOKENS:
            return [
                (
                    _spread(prompt, CHAT_SIGMA, CHAT_PROMPT_LIMIT, rng),
                    _spread(answer, CHAT_ANSWER_SIGMA, CHAT_ANSWER_LIMIT, rng),
                )
                for _ in range(count)
            ]
        if self.shortest < 1.0:
            return [(self._uniform(prompt, rng), self._uniform(answer, rng)) for _ in range(count)]
        return [(prompt, answer)] * count

    def _uniform(self, tokens: int, rng: random.Random) -> int:
        return rng.randint(max(1, math.ceil(tokens * self.shortest)), tokens)


_KNOWN: Mapping[str, Conditions] = {
    "imax": Conditions(shortest=0.8),
    "accelmark": Conditions(chat=True),
}


def of(source: str) -> Conditions:
    """The conditions of a source, by its key."""
    return _KNOWN.get(source, Conditions())


def _spread(median: int, sigma: float, limit: float, rng: random.Random) -> int:
    """A log-normal length around its median, cut at ``limit`` times that."""
    return max(1, round(median * min(limit, math.exp(rng.gauss(0.0, sigma)))))
