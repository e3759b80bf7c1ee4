"""Whether a node admits a pod that is bound to it: what a kubelet checks once more.

After kubelet 1.37's pkg/kubelet/lifecycle/predicate.go. An extended resource that the node does
not know is ignored, as a kubelet does.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from modelserve.api import pods as pod_facts
from modelserve.decide import placement
from modelserve.ports import Object
from servelab.node.rules import amounts, confinement

# A kubelet's reason and message.
Rejection = tuple[str, str]
_HostPort = tuple[str, int, str]  # protocol, port, address
_ANY_ADDRESS = "0.0.0.0"
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def admit(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    """None if the pod may run there beside the ``others``; else why not."""
    return confinement.refused(pod) or _room(pod, node, others)


def _room(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    counted = [other for other in others if not pod_facts.is_over(other)]
    capacity = int(amounts.parse(str(allocatable.get("pods", "110"))))
    if len(counted) + 1 > capacity:
        return _short("pods", 1, len(counted), capacity)
    wanted = requests(pod)
    extended = sorted(name for name in wanted if name not in _NATIVE)
    for name in (*_NATIVE, *extended):
        if name not in allocatable or not wanted.get(name):
            continue
        used = sum((requests(other).get(name, Decimal(0)) for other in counted), Decimal(0))
        capacity_here = amounts.parse(str(allocatable[name]))
        if wanted[name] + used > capacity_here:
            unit = 1000 if name == "cpu" else 1
            asked, taken, whole = (int(n * unit) for n in (wanted[name], used, capacity_here))
            return _short(name, asked, taken, whole)
    return _placement(pod, node, counted)


def requests(pod: Object) -> Mapping[str, Decimal]:
    """What the pod asks for: the sum of its containers, or the largest init container if more.

    What the pod asks for as a whole (``spec.resources``) counts instead where it does.
    """
    return totals(pod, "requests")


def totals(pod: Object, kind: str) -> dict[str, Decimal]:
    """``requests`` or ``limits`` of the pod as a whole, after component-helpers' PodRequests."""
    spec = pod["spec"]
    total: dict[str, Decimal] = {}
    for container in spec["containers"]:
        _add(total, _asked(container, kind))
    most: dict[str, Decimal] = {}
    beside: dict[str, Decimal] = {}
    for container in spec.get("initContainers") or ():
        asked = _asked(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(total, asked)
            _add(beside, asked)
            asked = {}
        needs = dict(beside)
        _add(needs, asked)
        for name, amount in needs.items():
            most[name] = max(amount, most.get(name, Decimal(0)))
    for name, amount in most.items():
        total[name] = max(amount, total.get(name, Decimal(0)))
    total |= _asked(spec, kind)
    overhead = {n: amounts.parse(str(v)) for n, v in (spec.get("overhead") or {}).items()}
    _add(total, {n: v for n, v in overhead.items() if kind == "requests" or total.get(n)})
    return total


def _asked(holder: Mapping[str, Any], kind: str) -> dict[str, Decimal]:
    """What a container, or the pod, has in its own ``resources``; a limit is a request too."""
    resources = holder.get("resources") or {}
    found = dict(resources.get("limits") or {})
    if kind == "requests":
        found |= resources.get("requests") or {}
    return {name: amounts.parse(str(amount)) for name, amount in found.items()}


def _add(total: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _short(name: str, asked: int, used: int, capacity: int) -> Rejection:
    return (
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, "
        f"capacity: {capacity}",
    )


def _placement(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    meta = node["metadata"]
    if not placement.attracts(pod, meta["name"], meta.get("labels") or {}):
        return _failed("NodeAffinity", "didn't match Pod's node affinity/selector")
    taken = [port for other in others for port in _host_ports(other)]
    if any(_collide(port, other) for port in _host_ports(pod) for other in taken):
        return _failed("NodePorts", "didn't have free ports for the requested pod ports")
    if not placement.tolerates(pod, node.get("spec", {}).get("taints") or (), placement.NOT_RUN):
        return _failed("TaintToleration", "had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Rejection:
    return predicate, f"Predicate {predicate} failed: node(s) {why}"


def _host_ports(pod: Object) -> list[_HostPort]:
    spec = pod["spec"]
    shared = bool(spec.get("hostNetwork"))
    ports = (port for each in spec["containers"] for port in each.get("ports") or ())
    found = []
    for port in ports:
        number = port.get("hostPort") or (port.get("containerPort") if shared else None)
        if number:
            address = port.get("hostIP") or _ANY_ADDRESS
            found.append((str(port.get("protocol") or "TCP"), int(number), str(address)))
    return found


def _collide(one: _HostPort, other: _HostPort) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or _ANY_ADDRESS in (one[2], other[2]))
