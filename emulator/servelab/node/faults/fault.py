"""Faults of one target, pod or node, with their times, and the one decision: what holds when."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from modelserve.api import faults as api
from modelserve.api import timestamps
from modelserve.api.faults import FaultType as Type

NEVER = float("inf")
SLOWED = 10.0
FALLEN_OFF_THE_BUS = 79
SPOT_NOTICE_S = 120.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one target. It holds from ``start_s`` until ``end_s``, Unix seconds, real."""

    said: api.Fault
    start_s: float
    end_s: float = NEVER

    @property
    def type(self) -> Type:
        """Its kind."""
        return self.said.type

    @property
    def factor(self) -> float:
        """How many times as slow."""
        return SLOWED if self.said.factor is None else self.said.factor

    @property
    def exit_code(self) -> int:
        """What a container in a crash loop ends with."""
        return 1 if self.said.exit_code is None else self.said.exit_code

    @property
    def xid(self) -> int:
        """The driver's number for it."""
        return FALLEN_OFF_THE_BUS if self.said.xid is None else self.said.xid

    @property
    def notice_s(self) -> float:
        """From the notice until the node goes, emulated."""
        return SPOT_NOTICE_S if self.said.notice_seconds is None else self.said.notice_seconds

    def holds(self, now_s: float) -> bool:
        """Whether it is in effect."""
        return self.start_s <= now_s < self.end_s


@dataclass(frozen=True, slots=True)
class Target:
    """What faults may befall: a pod or a node. ``key`` draws for it; ``scale`` is of its time."""

    key: str
    node: str
    began_s: float
    scale: float
    is_pod: bool


@dataclass(frozen=True, slots=True)
class Faults:
    """All of one target."""

    entries: tuple[Fault, ...] = field(default_factory=tuple)

    def holding(
        self, kind: Type, now_s: float, container: str = "", image: str = ""
    ) -> Fault | None:
        """The first of that kind in effect; one that names a container or image is for that."""
        for fault in self.entries:
            said = fault.said
            if fault.type is not kind or not fault.holds(now_s):
                continue
            if said.container and container and said.container != container:
                continue
            if said.image and image and said.image != image:
                continue
            return fault
        return None

    def begun(self, kind: Type, since_s: float, now_s: float) -> Fault | None:
        """The first of that kind in effect that was not before ``since_s``."""
        found = (f for f in self.entries if f.type is kind and f.holds(now_s))
        return next((fault for fault in found if not fault.holds(since_s)), None)

    def next_change_s(self, after_s: float) -> float:
        """When, after that time, the next one begins or ends; infinite if none does."""
        if not self.entries:
            return NEVER  # as for nearly all pods, at every step of theirs
        moments = (at for fault in self.entries for at in (fault.start_s, fault.end_s))
        return min((at for at in moments if at > after_s), default=NEVER)


NONE = Faults()


def resolve(said: Iterable[api.Fault], target: Target) -> Faults:
    """Those of the list that befall the target, with their times; chance is drawn by its key."""
    found = [timed(fault, target) for fault in said if _befalls(fault, target)]
    return Faults(tuple(found))


def merge(several: Sequence[Faults]) -> Faults:
    """All together, in order."""
    return Faults(tuple(fault for faults in several for fault in faults.entries))


def _befalls(said: api.Fault, target: Target) -> bool:
    # A pod feels that its node is lost, and a node that one of its GPUs is.
    both = said.type in (Type.NODE_LOST, Type.XID)
    if said.of_node is target.is_pod and not both:
        return False
    if said.nodes and target.node not in said.nodes:
        return False
    key = target.node if said.of_node else target.key
    drawn = random.Random(f"{said.seed}/{said.type}/{said.name or ''}/{key}").random()
    return drawn < said.probability


def timed(said: api.Fault, target: Target) -> Fault:
    """With its times, for that target."""
    at_s = timestamps.parse_if_any(said.at)
    start_s = (target.began_s if at_s is None else at_s) + said.after_seconds / target.scale
    lasts_s = said.duration_seconds
    return Fault(said, start_s, NEVER if lasts_s is None else start_s + lasts_s / target.scale)
