"""Fences: for a while, a gateway sends nothing to the pods that are about to go.

Each is keyed by the operator's id and lapses by itself after ``wire.FENCE_LAPSE_REAL_S``: an
operator that dies between grant and write leaves nothing stuck. It bars only the pods it names:
the pods of a wake are new and never barred.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from modelserve.api import wire


@dataclass(frozen=True, slots=True)
class Fence:
    """One promise to the operator."""

    fence_id: str
    pod_uids: frozenset[str]
    lapses_at_real_s: float


class Fences:
    """The fences of one model at one gateway."""

    def __init__(self) -> None:
        self._fences: dict[str, Fence] = {}

    def grant(self, fence_id: str, pod_uids: Iterable[str], now_real_s: float) -> None:
        """Bar these pods from now on; granted again, the same id lasts anew."""
        lapses_at_real_s = now_real_s + wire.FENCE_LAPSE_REAL_S
        self._fences.pop(fence_id, None)
        self._fences[fence_id] = Fence(fence_id, frozenset(pod_uids), lapses_at_real_s)

    def lift(self, fence_id: str) -> bool:
        """Take one back; False if it is not in force."""
        return self._fences.pop(fence_id, None) is not None

    def advance(self, now_real_s: float) -> bool:
        """Let lapsed fences go; True if any went."""
        lapsed = [f.fence_id for f in self._fences.values() if f.lapses_at_real_s <= now_real_s]
        for fence_id in lapsed:
            del self._fences[fence_id]
        return bool(lapsed)

    def barred(self) -> Collection[str]:
        """UIDs of the pods that get nothing."""
        if not self._fences:
            return ()
        return frozenset().union(*(fence.pod_uids for fence in self._fences.values()))

    @property
    def newest_id(self) -> str:
        """The id granted last that is still in force, or an empty string."""
        return next(reversed(self._fences), "")

    def next_wake(self) -> float | None:
        """When the next fence lapses, in real seconds."""
        return min((f.lapses_at_real_s for f in self._fences.values()), default=None)
