"""Faults in time: which hold at a moment, and what they do to a step, a request, a health check."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from servelab.engine.admin import documents
from servelab.engine.admin.documents import Timed
from servelab.engine.exchange import WantedFault

# A step of a hung engine: longer than anything that is emulated, in seconds. It is cut short when
# the hang is over.
FOR_EVER_S = 1e7

Fault = Timed | documents.CounterReset | documents.Exit


class InjectedError(WantedFault):
    """A request fails because a fault says so; the engine answers as to a fault of its own."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault, and when it was set, in emulated seconds."""

    fault: Fault
    since_s: float

    def holds(self, now_s: float) -> bool:
        """Whether it is in effect."""
        t_s = now_s - self.since_s
        return self.fault.span.holds(t_s) if isinstance(self.fault, Timed) else False

    @property
    def starts_s(self) -> float:
        """When it begins to be in effect."""
        return self.since_s + self.fault.start_s

    @property
    def ends_s(self) -> float:
        """When it is over; infinite if it never is."""
        return self.since_s + self.fault.span.end_s if isinstance(self.fault, Timed) else 0.0


def factor(faults: Mapping[str, Injected], now_s: float) -> float:
    """How many times as long a step takes that starts now."""
    found = faults.get("slow")
    if found is None or not found.holds(now_s):
        return 1.0
    assert isinstance(found.fault, documents.Slow)
    return found.fault.factor


def hangs(faults: Mapping[str, Injected], now_s: float) -> bool:
    """Whether no step ends."""
    found = faults.get("hang")
    return found is not None and found.holds(now_s)


def is_silent(faults: Mapping[str, Injected], now_s: float) -> bool:
    """Whether nothing is answered at all."""
    found = faults.get("hang")
    if found is None or not found.holds(now_s):
        return False
    assert isinstance(found.fault, documents.Hang)
    return found.fault.health == "silent"


def drawn_status(
    faults: Mapping[str, Injected], now_s: float, rng: random.Random | None
) -> int | None:
    """The status a request for generation fails with, or None if it does not."""
    found = faults.get("errors")
    if found is None or rng is None or not found.holds(now_s):
        return None
    assert isinstance(found.fault, documents.Errors)
    return found.fault.status if rng.random() < found.fault.share else None


def holding(faults: Mapping[str, Injected], now_s: float) -> frozenset[str]:
    """The kinds in effect."""
    return frozenset(kind for kind, found in faults.items() if found.holds(now_s))
