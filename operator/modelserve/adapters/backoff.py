"""Growing, jittered pauses between attempts."""

import random


class Backoff:
    """Doubles from ``first_real_s`` to ``most_real_s``; each pause is 50 to 100 % of the step."""

    def __init__(self, rng: random.Random, first_real_s: float, most_real_s: float) -> None:
        self._rng = rng
        self._first_real_s = first_real_s
        self._most_real_s = most_real_s
        self._step_real_s = first_real_s

    def next_real_s(self) -> float:
        """The pause before the next attempt."""
        step = self._step_real_s
        self._step_real_s = min(self._most_real_s, step * 2)
        return step * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """All is well again: begin with the shortest pause."""
        self._step_real_s = self._first_real_s
