"""Fronts of policies: what each can reach, and who reaches what the first one cannot. Pure.

A point of another's front is held by one of ours that costs no more, within a hundredth, and waits
no longer, within a tenth. One that none of ours holds is ahead: there the other front crosses ours.
A p95 beyond what gateways hold a request for by default is on no front: too few would be served.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modelserve.api import spec
from servelab.sweep import summary

LONGEST_WAIT_S = float(spec.Hold().max_seconds)
SAME_WAIT = 1.1
SAME_PRICE = 1.01  # other seeds make more of a difference


@dataclass(frozen=True, slots=True)
class Point:
    """What a policy reaches, and the price at which the judged one waits as long; inf: at none."""

    reached: summary.Setup
    ours: float

    @property
    def ahead(self) -> bool:
        """Whether no setting of the judged policy holds it."""
        return self.ours > self.reached.price * SAME_PRICE

    @property
    def more(self) -> float:
        """What the judged policy pays more for as short a wait, as a share; inf if it cannot."""
        return self.ours / self.reached.price - 1 if self.reached.price else 0.0

    def to_json(self) -> dict[str, Any]:
        """Figures of the point, and how it stands to the judged front."""
        ours = round(self.ours, 6) if math.isfinite(self.ours) else None
        return {**self.reached.to_json(), "judged_needs": ours, "ahead": self.ahead}


@dataclass(frozen=True, slots=True)
class Front:
    """One policy's, the cheapest point first. A bound is no policy that anybody could run."""

    policy: str
    points: Sequence[Point]
    bound: bool = False

    @property
    def crosses(self) -> bool:
        """Whether some point of it is ahead of the judged front."""
        return not self.bound and any(each.ahead for each in self.points)

    def to_json(self) -> dict[str, Any]:
        """The front as data."""
        points = [each.to_json() for each in self.points]
        return {"policy": self.policy, "bound": self.bound, "points": points}


def of(
    families: Sequence[tuple[str, Sequence[summary.Setup]]], bounds: Sequence[str]
) -> list[Front]:
    """A front for each policy and all its settings; the first is the one that is judged.

    Whoever serves at no setting has none, but for the first, whose is empty then.
    """
    served = [(name, [e for e in each if e.wait_s <= LONGEST_WAIT_S]) for name, each in families]
    judged = served[0][1]
    return [
        Front(name, [Point(e, _ours(judged, e)) for e in summary.front(each)], name in bounds)
        for name, each in served
        if each or each is judged
    ]


def _ours(judged: Sequence[summary.Setup], other: summary.Setup) -> float:
    within_s = other.wait_s * SAME_WAIT
    return min((each.price for each in judged if each.wait_s <= within_s), default=math.inf)
