"""An oracle: it knows the trace, has each replica ready when it is needed, and no sooner.

Of all policies that let nobody wait it takes the fewest replica-seconds, starting ones counted: a
gap is bridged exactly where stopping and starting again would take longer than the gap.
"""

import bisect
import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from servelab.policies.decision import Decision, Reason
from servelab.policies.observation import Observation

_LATER_S = 1e-6


@dataclass(frozen=True, slots=True)
class Needs:
    """How many replicas are needed: ``counts[i]`` from ``from_s[i]`` on, 0 before the first."""

    from_s: tuple[float, ...]
    counts: tuple[int, ...]

    def most(self, since_s: float, until_s: float) -> int:
        """The most needed at any time of a span, both ends included."""
        first = bisect.bisect_right(self.from_s, since_s) - 1
        last = bisect.bisect_right(self.from_s, until_s)
        return max(self.counts[max(first, 0) : last], default=0)

    def next_change_s(self, after_s: float) -> float:
        """When the need changes next; infinite if it does not."""
        place = bisect.bisect_right(self.from_s, after_s)
        return self.from_s[place] if place < len(self.from_s) else math.inf


def needs(
    requests: Iterable[tuple[float, float]], *, slots: int, utilization: float = 1.0
) -> Needs:
    """What it takes that no request waits, from (arrival, service) in seconds, in order of arrival.

    Each request has a slot from its arrival to its end; replicas are filled to ``utilization``.
    """
    from_s: list[float] = []
    counts: list[int] = []
    ends: list[float] = []
    room = slots * utilization

    def note(at_s: float) -> None:
        count = math.ceil(len(ends) / room - 1e-9)
        if from_s and from_s[-1] == at_s:
            counts[-1] = count
        elif not counts or counts[-1] != count:
            from_s.append(at_s)
            counts.append(count)

    for arrival_s, service_s in requests:
        while ends and ends[0] <= arrival_s:
            note(heapq.heappop(ends))
        heapq.heappush(ends, arrival_s + service_s)
        note(arrival_s)
    while ends:
        note(heapq.heappop(ends))
    return Needs(tuple(from_s), tuple(counts))


@dataclass(frozen=True, slots=True)
class Oracle:
    """Orders what will be needed within ``lead_s``, the time a replica takes to get ready."""

    needs: Needs
    lead_s: float
    min_replicas: int = 0
    max_replicas: int | None = None

    @property
    def woken(self) -> bool:
        """It knew before."""
        return False

    def start(self, count: int, now_s: float) -> None:
        """It remembers nothing: all is known."""

    def decide(self, seen: Observation, past: None, now_s: float) -> tuple[Decision, None]:
        """The most that will be needed from now until one ordered now is ready."""
        until_s = now_s + self.lead_s
        wanted = self.needs.most(now_s, until_s)
        count = max(self.min_replicas, min(wanted, self.max_replicas or wanted))
        change_s = self.needs.next_change_s(now_s)
        ahead_s = self.needs.next_change_s(until_s) - self.lead_s
        # Never now again, where the subtraction rounds down.
        at_s = min(change_s, max(ahead_s, now_s + _LATER_S))
        why = f"{wanted} needed within {self.lead_s:g} s"
        inputs = {"needed": float(wanted)}
        revisit_s = at_s if math.isfinite(at_s) else None
        decision = Decision(count, seen.count, Reason.FORESIGHT, why, inputs, (), wanted, revisit_s)
        return decision, None
