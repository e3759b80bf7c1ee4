"""A count on its way from the policy to the decision, with what is to be said of it.

The sentence is put together when somebody reads it: most decisions change nothing and are not read.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from modelserve.decide.record import Reason

Words = Callable[[], str]


class Verdict(NamedTuple):
    """``why``: the parts of the sentence, in order."""

    replicas: int
    reason: Reason
    why: tuple[Words, ...]
    limits: tuple[Reason, ...] = ()
    at_s: float | None = None  # when the limit that counts may give way
    missing_replicas: int = 0
    look_s: float | None = None  # when the first of its limits may

    def moved(
        self, replicas: int, reason: Reason, why: Words, at_s: float | None = None, missing: int = 0
    ) -> "Verdict":
        """The verdict under one more limit."""
        limits, missing = (*self.limits, reason), missing or self.missing_replicas
        why_all = (*self.why, why)
        return Verdict(replicas, reason, why_all, limits, at_s, missing, self._first(at_s))

    def until(self, at_s: float) -> "Verdict":
        """The same, which may change at that instant."""
        return self._replace(at_s=at_s, look_s=self._first(at_s))

    def _first(self, at_s: float | None) -> float | None:
        if self.look_s is None or (at_s is not None and at_s < self.look_s):
            return at_s
        return self.look_s

    def adding(self, why: Words, **changed: Any) -> "Verdict":
        """The same with one more part of the sentence, and other fields changed."""
        return self._replace(why=(*self.why, why), **changed)

    @property
    def text(self) -> str:
        """The sentence so far."""
        return "; ".join(part() for part in self.why)
