"""Seeded log-normal jitter: what was predicted and what is measured differ honestly, yet little."""

import random

# Spread of one phase (about 1.2 %), and the bound that keeps a lone cold start within 5 % of its
# prediction. Our choice; real starts on equal hardware spread more.
SIGMA = 0.012
BOUND = 0.04


def factor(seed: str, part: str, sigma: float = SIGMA) -> float:
    """The factor on one part's duration: the same for the same seed and part, near 1."""
    draw = random.Random(f"{seed}/{part}").lognormvariate(0.0, sigma)
    return min(1 + BOUND, max(1 - BOUND, draw))
