"""What a policy of another system decided, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Reason(StrEnum):
    """Why the count is what it is. Words that our own decisions use too mean the same there."""

    STEADY_LOAD = "SteadyLoad"  # what the metric asks for
    ACTIVATION = "Activation"
    WITHIN_TOLERANCE = "WithinTolerance"
    STABILIZING_UP = "StabilizingUp"
    STABILIZING_DOWN = "StabilizingDown"
    COOLDOWN = "Cooldown"
    AT_MAXIMUM = "AtMaximum"
    AT_MINIMUM = "AtMinimum"
    RATE_LIMITED = "RateLimited"
    NO_SIGNAL = "NoSignal"
    FALLBACK = "Fallback"
    PANIC = "Panic"  # Knative and AIBrix: the short window leads
    DISABLED = "Disabled"  # a count of zero that is left to others
    DEADLINE = "Deadline"  # what was started did not get ready in time
    FIXED = "Fixed"
    FORESIGHT = "Foresight"
    NOT_DUE = "NotDue"  # called between two of its own ticks


@dataclass(frozen=True, slots=True)
class Decision:
    """A count of replicas to ask for. Times are emulated seconds on the clock of ``now_s``."""

    desired: int
    current: int
    reason: Reason
    message: str
    inputs: Mapping[str, float] = field(default_factory=dict)
    limits: tuple[Reason, ...] = ()  # what kept the count from what the rule asked for
    unlimited: int = 0  # what the rule asked for, before windows, rates and bounds
    revisit_at_s: float | None = None  # call again then; None: only on a change

    @property
    def changes(self) -> bool:
        """Whether applying it writes a count."""
        return self.desired != self.current


def hold(current: int, reason: Reason, message: str, revisit_at_s: float | None = None) -> Decision:
    """Leave the count as it is."""
    return Decision(current, current, reason, message, unlimited=current, revisit_at_s=revisit_at_s)
