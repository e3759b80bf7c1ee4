"""Whether a node admits a pod that is bound to it: what a kubelet checks once more.

After kubelet 1.37's pkg/kubelet/lifecycle/predicate.go. An extended resource that the node does
not know is ignored, as a kubelet does.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from modelserve.api import pods as pod_facts
from modelserve.ports import Object

# A kubelet's reason and message.
Rejection = tuple[str, str]
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}


def admit(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    """None if the pod may run there beside the ``others``; else why not."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    counted = [other for other in others if not pod_facts.is_over(other)]
    capacity = int(_quantity(str(allocatable.get("pods", "110"))))
    if len(counted) + 1 > capacity:
        return _short("pods", 1, len(counted), capacity)
    wanted = requests(pod)
    extended = sorted(name for name in wanted if name not in _NATIVE)
    for name in (*_NATIVE, *extended):
        if name not in allocatable or not wanted.get(name):
            continue
        used = sum((requests(other).get(name, Decimal(0)) for other in counted), Decimal(0))
        capacity_here = _quantity(str(allocatable[name]))
        if wanted[name] + used > capacity_here:
            unit = 1000 if name == "cpu" else 1
            asked, taken, whole = (int(n * unit) for n in (wanted[name], used, capacity_here))
            return _short(name, asked, taken, whole)
    return _selector(pod, node)


def requests(pod: Object) -> Mapping[str, Decimal]:
    """What the pod asks for: the sum of its containers, or the largest init container if more."""
    spec = pod["spec"]
    total: dict[str, Decimal] = {}
    for container in spec["containers"]:
        _add(total, _asked(container))
    most: dict[str, Decimal] = {}
    beside: dict[str, Decimal] = {}
    for container in spec.get("initContainers") or ():
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            _add(total, asked)
            _add(beside, asked)
            asked = {}
        needs = dict(beside)
        _add(needs, asked)
        for name, amount in needs.items():
            most[name] = max(amount, most.get(name, Decimal(0)))
    names = {*total, *most}
    largest = {n: max(total.get(n, Decimal(0)), most.get(n, Decimal(0))) for n in names}
    _add(largest, {name: _quantity(str(v)) for name, v in (spec.get("overhead") or {}).items()})
    return largest


def _asked(container: Mapping[str, Any]) -> dict[str, Decimal]:
    resources = container.get("resources") or {}
    found = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: _quantity(str(amount)) for name, amount in found.items()}


def _add(total: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _short(name: str, asked: int, used: int, capacity: int) -> Rejection:
    return (
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, "
        f"capacity: {capacity}",
    )


def _selector(pod: Object, node: Object) -> Rejection | None:
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    if all(labels.get(key) == value for key, value in selector.items()):
        return None
    text = "node(s) didn't match Pod's node affinity/selector"
    return "NodeAffinity", f"Predicate NodeAffinity failed: {text}"


def _quantity(text: str) -> Decimal:
    """A Kubernetes quantity; the API server has checked it already."""
    number = text.rstrip("kKMGTPEim")
    try:
        return Decimal(number) * _SUFFIXES[text[len(number) :]]
    except (InvalidOperation, KeyError):
        return Decimal(text) if _is_number(text) else Decimal(0)


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True
