"""The record of a decision: what to do, why in a word, and why in a sentence with its numbers."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from modelserve.decide import victims


class Reason(StrEnum):
    """Why the count is what it is; stable, read by users and scripts."""

    STEADY_LOAD = "SteadyLoad"
    ACTIVATION = "Activation"
    BACKLOG_WITHIN_COLD_START = "BacklogWithinColdStart"
    BACKLOG_BEYOND_COLD_START = "BacklogBeyondColdStart"
    PROGRESS_GUARD = "ProgressGuard"
    WITHIN_TOLERANCE = "WithinTolerance"
    STABILIZING_DOWN = "StabilizingDown"
    COOLDOWN = "Cooldown"
    FENCE_REFUSED = "FenceRefused"
    AT_MAXIMUM = "AtMaximum"
    AT_MINIMUM = "AtMinimum"
    RATE_LIMITED = "RateLimited"
    INSUFFICIENT_GPU = "InsufficientGPU"
    NO_SIGNAL = "NoSignal"
    FALLBACK = "Fallback"
    MANUAL = "Manual"
    DRY_RUN = "DryRun"
    CONFLICT = "Conflict"


def nobody() -> victims.Plan:
    """Nobody goes."""
    return victims.NOBODY


class Decision(NamedTuple):
    """One decision. Times are emulated seconds on the clock of ``now_s``.

    To apply it: delete ``delete_uids``, write ``deletion_costs`` and see them back; nothing more
    unless ``changes``; with ``wants_zero`` the hand-shake of ``modelserve.decide.settle`` comes
    first; then write ``desired``, with ``force`` where a foreign writer must lose the field.
    """

    desired: int
    current: int
    reason: Reason
    # The sentence, the numbers and the victims are put together when they are asked for.
    words: Callable[[], str]
    numbers: Callable[[], Mapping[str, float]] = dict
    limits: tuple[Reason, ...] = ()  # what kept the count from what the rule asked for
    unlimited: int = 0  # what the rule asked for, before windows, rates and bounds
    revisit_at_s: float | None = None  # decide again then at the latest; None: only on a change
    wants_zero: bool = False
    write: bool = True
    force: bool = False
    conflict: bool = False  # somebody else wrote the live count
    signal_ok: bool = True
    signal_missing: tuple[str, ...] = ()  # what no figure came from, for the condition's message
    active: bool = False  # requests held, queued or under way, or arriving
    next_ready_at_s: float | None = None
    scale_down_at_s: float | None = None
    wait_s: float = 0.0  # what a request that comes now must expect to wait
    arrival_rate_per_s: float = 0.0
    service_s: float = 0.0
    missing_gpu_replicas: int = 0  # replicas wanted that have no GPUs
    delete_uids: tuple[str, ...] = ()  # crash-looping and overdue pods to delete now
    stuck_uids: tuple[str, ...] = ()
    going: Callable[[], victims.Plan] = nobody  # who goes when ``desired`` is below the live count

    @property
    def message(self) -> str:
        """Why, as a sentence with its numbers."""
        return self.words()

    @property
    def inputs(self) -> Mapping[str, float]:
        """All the numbers used."""
        return self.numbers()

    @property
    def victims(self) -> tuple[str, ...]:
        """UIDs meant to go when ``desired`` is below the live count."""
        return self.going().uids

    @property
    def deletion_costs(self) -> Mapping[str, int]:
        """Pod deletion costs to write before the count."""
        return self.going().costs

    @property
    def changes(self) -> bool:
        """Whether applying it writes a count; a forced write of the same count takes the field."""
        return self.write and (self.desired != self.current or self.force)
