"""The hand-shake to zero: ask for a fence, write 0 while it holds, take it back if that went wrong.

A state machine without I/O: each function takes what happened and returns the new state and the
acts to carry out. Times are real seconds, since a fence lapses after three of them at the gateways.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from modelserve.api import wire

# The write must be out this long before the fence may lapse.
WRITE_MARGIN_REAL_S = 0.5
RETRY_FIRST_REAL_S = 1.0
RETRY_MOST_REAL_S = 30.0


class Phase(StrEnum):
    """Where the hand-shake stands."""

    IDLE = "Idle"
    ASKED = "Asked"
    WRITING = "Writing"
    UNSURE = "Unsure"  # the write's result is unknown; the count is being read


class Outcome(StrEnum):
    """How the write ended. UNKNOWN: no answer came, it may or may not have happened."""

    DONE = "Done"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class AskFence:
    """Ask every live gateway not to send to these pods."""

    fence_id: str
    pod_uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteZero:
    """Write 0; give up on an answer at ``until_real_s``, when the fence may lapse."""

    fence_id: str
    until_real_s: float


@dataclass(frozen=True, slots=True)
class ReadCount:
    """Read the Deployment's count from the API server, past any cache."""


@dataclass(frozen=True, slots=True)
class Unfence:
    """Take the fence back at every live gateway."""

    fence_id: str


Act = AskFence | WriteZero | ReadCount | Unfence


@dataclass(frozen=True, slots=True)
class Settle:
    """The hand-shake of one model. ``retry_real_s``: no new one before then."""

    phase: Phase = Phase.IDLE
    fence_id: str = ""
    pod_uids: tuple[str, ...] = ()
    asked_real_s: float = 0.0
    refusals: int = 0
    retry_real_s: float | None = None

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        return self.phase is not Phase.IDLE


Result = tuple[Settle, tuple[Act, ...]]


def begin(now: Settle, pod_uids: Collection[str], fence_id: str, now_real_s: float) -> Result:
    """The decision wants zero. Nothing happens while one is under way or it is too early."""
    early = now.retry_real_s is not None and now_real_s < now.retry_real_s
    if now.busy or early:
        return now, ()
    uids = tuple(sorted(pod_uids))
    long_ago = now.retry_real_s is None or now_real_s > now.retry_real_s + RETRY_MOST_REAL_S
    asked = Settle(Phase.ASKED, fence_id, uids, now_real_s, 0 if long_ago else now.refusals)
    return asked, (AskFence(fence_id, uids),)


def answered(
    now: Settle, granted: bool, pod_uids: Collection[str], wanted: bool, now_real_s: float
) -> Result:
    """All gateways answered. ``pod_uids`` and ``wanted``: the pods and the decision as of now.

    Refused if a gateway refused, if zero is no longer wanted, if a pod came that is not fenced, or
    if the fence could lapse before the write is out.
    """
    if now.phase is not Phase.ASKED:
        return now, ()
    lapses_real_s = now.asked_real_s + wire.FENCE_LAPSE_REAL_S
    in_time = now_real_s <= lapses_real_s - 2 * WRITE_MARGIN_REAL_S
    if not (granted and wanted and in_time and set(pod_uids) <= set(now.pod_uids)):
        return _back_off(now, now_real_s)
    writing = Settle(Phase.WRITING, now.fence_id, now.pod_uids, now.asked_real_s, now.refusals)
    return writing, (WriteZero(now.fence_id, lapses_real_s - WRITE_MARGIN_REAL_S),)


def wrote(now: Settle, outcome: Outcome, now_real_s: float) -> Result:
    """The write ended. After DONE the fence is left to lapse: the pods it bars are going."""
    if now.phase is not Phase.WRITING:
        return now, ()
    if outcome is Outcome.DONE:
        return Settle(), ()
    if outcome is Outcome.FAILED:
        return _back_off(now, now_real_s)
    unsure = Settle(Phase.UNSURE, now.fence_id, now.pod_uids, now.asked_real_s, now.refusals)
    return unsure, (ReadCount(),)


def read(now: Settle, count: int | None, now_real_s: float) -> Result:
    """The count was read after an unknown result; None: that failed too, read again.

    Only a count that is known not to be 0 takes the fence back. If nothing can be read, the fence
    lapses by itself.
    """
    if now.phase is not Phase.UNSURE:
        return now, ()
    if count is None:
        return now, (ReadCount(),)
    if count == 0:
        return Settle(), ()
    return _back_off(now, now_real_s)


def _back_off(now: Settle, now_real_s: float) -> Result:
    wait_s = min(RETRY_MOST_REAL_S, RETRY_FIRST_REAL_S * 2**now.refusals)
    idle = Settle(refusals=min(now.refusals + 1, 10), retry_real_s=now_real_s + wait_s)
    return idle, (Unfence(now.fence_id),)
