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

    def moved(
        self, replicas: int, reason: Reason, why: Words, at_s: float | None = None, missing: int = 0
    ) -> "Verdict":
        """The verdict under one more limit."""
        limits, missing = (*self.limits, reason), missing or self.missing_replicas
        return Verdict(replicas, reason, (*self.why, why), limits, at_s, missing)

    def adding(self, why: Words, **changed: Any) -> "Verdict":
        """The same with one more part of the sentence, and other fields changed."""
        return self._replace(why=(*self.why, why), **changed)

    @property
    def text(self) -> str:
        """The sentence so far."""
        return "; ".join(part() for part in self.why)
