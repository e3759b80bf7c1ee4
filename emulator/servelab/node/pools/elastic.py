"""Which nodes an elastic pool needs, and which it could spare: a cluster autoscaler's view (pure).

Pods that the scheduler could not place are placed on nodes there are or are coming, then on new
ones. Resources, node selector, required node affinity and taints count; affinity between pods and
topology spread do not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from modelserve.api import conditions
from modelserve.decide import placement
from modelserve.ports import Object
from servelab.node.rules import admission


@dataclass(frozen=True, slots=True)
class Shape:
    """A node as the scheduler would see it, whether it stands or is still to come."""

    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    allocatable: Mapping[str, Decimal]


@dataclass(slots=True)
class Place:
    """A node with what it has left; ``pods`` are those that were found room there.

    ``name`` is empty for one that is not there yet: nobody can ask for it by name.
    """

    name: str
    shape: Shape
    free: dict[str, Decimal]
    pods: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, shape: Shape, there: Iterable[Object] = ()) -> "Place":
        """The node beside the pods that are there."""
        place = cls(name, shape, dict(shape.allocatable))
        for pod in there:
            place.take(pod)
        return place

    def take(self, pod: Object) -> None:
        """The pod's requests are gone from what is left."""
        for name, amount in _wants(pod).items():
            self.free[name] = self.free.get(name, Decimal(0)) - amount

    def fits(self, pod: Object) -> bool:
        wanted = _wants(pod).items()
        shape = self.shape
        return placement.accepts(pod, self.name, shape.labels, shape.taints) and all(
            self.free.get(name, Decimal(0)) >= amount for name, amount in wanted if amount
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """How many new nodes, which pods they are for, and which pods more nodes would help."""

    new: int
    triggering: tuple[str, ...]
    refused: tuple[str, ...]
    expected: frozenset[str]  # places that pods wait for


def unplaced(pods: Iterable[Object], resources: Iterable[str]) -> list[Object]:
    """Pods the scheduler found no node for that ask for one of the resources, oldest first."""
    wanted = frozenset(resources)
    found = [
        pod
        for pod in pods
        if not pod["spec"].get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and conditions.find(pod, "PodScheduled").get("reason") == "Unschedulable"
        and any(amount and name in wanted for name, amount in admission.requests(pod).items())
    ]
    return sorted(found, key=lambda pod: (pod["metadata"].get("creationTimestamp", ""), _uid(pod)))


def answer(
    pending: Iterable[Object], places: Sequence[Place], template: Shape, room: int
) -> Answer:
    """First fit, in order: nodes there are or are coming, then up to ``room`` new ones."""
    fresh: list[Place] = []
    triggering: list[str] = []
    refused: list[str] = []
    for pod in pending:
        if not Place.of("", template).fits(pod):
            continue  # No node of this pool would ever do.
        found = next((place for place in (*places, *fresh) if place.fits(pod)), None)
        if found is None and len(fresh) < room:
            found = Place.of("", template)
            fresh.append(found)
        if found is None:
            refused.append(_uid(pod))
            continue
        found.take(pod)
        found.pods.append(_uid(pod))
        if found in fresh:
            triggering.append(_uid(pod))
    expected = frozenset(place.name for place in places if place.pods)
    return Answer(len(fresh), tuple(triggering), tuple(refused), expected)


def holds_node(pod: Object) -> bool:
    """Whether an autoscaler keeps a node for the pod's sake: not a DaemonSet's, not one over."""
    owners = pod["metadata"].get("ownerReferences") or ()
    daemon = any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners)
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not daemon and not over


def _wants(pod: Object) -> dict[str, Decimal]:
    return {**admission.requests(pod), "pods": Decimal(1)}


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
