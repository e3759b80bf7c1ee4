"""The record of a decision: what to do, why in a word, and why in a sentence with its numbers."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from modelserve.decide import claims, victims


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


class Account(Protocol):
    """What a decision has to say for itself, worked out when somebody asks: few do."""

    def message(self) -> str:
        """Why, as a sentence with its numbers."""

    def numbers(self) -> Mapping[str, float]:
        """All the numbers used."""

    def going(self) -> victims.Plan:
        """Who goes when the count asked for is below the live count."""

    def scale_down_at_s(self) -> float | None:
        """When the next shrink may happen if demand stays as it is."""

    def wait_s(self) -> float:
        """What a request that comes now must expect to wait."""


class Decision(NamedTuple):
    """One decision. Times are emulated seconds on the clock of ``now_s``.

    To apply it: delete ``delete_uids``, write ``deletion_costs`` and see them back; nothing more
    unless ``changes``; with ``wants_zero`` the hand-shake of ``modelserve.decide.settle`` comes
    first; then write ``desired``, with ``force`` where a foreign writer must lose the field.
    """

    desired: int
    current: int
    reason: Reason
    account: Account
    limits: tuple[Reason, ...] = ()  # what kept the count from what the rule asked for
    unlimited: int = 0  # what the rule asked for, before windows, rates and bounds
    revisit_at_s: float | None = None  # decide again then at the latest; None: only on a change
    wants_zero: bool = False
    claim: claims.Claim = claims.OURS  # whose the live count is
    delete_uids: tuple[str, ...] = ()  # crash-looping and overdue pods to delete now
    signal_missing: tuple[str, ...] = ()  # what no figure came from, for the condition's message
    active: bool = False  # requests held, queued or under way, or arriving
    next_ready_at_s: float | None = None
    arrival_rate_per_s: float = 0.0
    service_s: float = 0.0
    missing_gpu_replicas: int = 0  # replicas wanted that have no GPUs
    stuck_uids: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Why, as a sentence with its numbers."""
        return self.account.message()

    @property
    def inputs(self) -> Mapping[str, float]:
        """All the numbers used."""
        return self.account.numbers()

    @property
    def victims(self) -> tuple[str, ...]:
        """UIDs meant to go when ``desired`` is below the live count."""
        return self.account.going().uids

    @property
    def deletion_costs(self) -> Mapping[str, int]:
        """Pod deletion costs to write before the count."""
        return self.account.going().costs

    @property
    def scale_down_at_s(self) -> float | None:
        """When the next shrink may happen if demand stays as it is; None if none is in sight."""
        return self.account.scale_down_at_s()

    @property
    def wait_s(self) -> float:
        """What a request that comes now must expect to wait."""
        return self.account.wait_s()

    @property
    def conflict(self) -> bool:
        """Whether somebody else wrote the live count."""
        return self.claim.foreign

    @property
    def force(self) -> bool:
        """Whether the count is to be taken back."""
        return self.claim.force

    @property
    def write(self) -> bool:
        """Whether the count is ours to write."""
        return self.claim.force or not self.claim.foreign

    @property
    def signal_ok(self) -> bool:
        """Whether all figures came."""
        return not self.signal_missing

    @property
    def changes(self) -> bool:
        """Whether applying it writes a count; a forced write of the same count takes the field."""
        return self.write and (self.desired != self.current or self.force)
