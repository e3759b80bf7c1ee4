"""Whether a node suits a pod by labels, name and taints: the scheduler's rules (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.ports import Object

NOT_SCHEDULED = ("NoSchedule", "NoExecute")
NOT_RUN = ("NoExecute",)
# Taints that the node controller sets and takes away: what a node suits is not theirs to say.
PASSING = "node.kubernetes.io/"


def accepts(
    pod: Object, name: str, labels: Mapping[str, str], taints: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether selector, required node affinity and taints let the scheduler put the pod there."""
    return attracts(pod, name, labels) and tolerates(pod, taints, NOT_SCHEDULED)


def lasting(node: Object) -> Sequence[Mapping[str, Any]]:
    """The taints of a node that are its own."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if not taint["key"].startswith(PASSING)]


def attracts(pod: Object, name: str, labels: Mapping[str, str]) -> bool:
    """Whether selector and required node affinity let the pod on a node of that name."""
    spec = pod["spec"]
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = affinity.get("nodeSelectorTerms")
    return not terms or any(_matches(term, name, labels) for term in terms)


def tolerates(pod: Object, taints: Sequence[Mapping[str, Any]], effects: Sequence[str]) -> bool:
    """Whether the pod tolerates all taints of these effects."""
    tolerations = pod["spec"].get("tolerations") or ()
    return all(
        any(_covers(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint["effect"] in effects
    )


def _matches(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    """A term without any expression matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    found = [*(_holds(each, labels) for each in expressions)]
    found += [_holds(each, {"metadata.name": name}) for each in fields]
    return bool(found) and all(found)


def _holds(entry: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(entry["key"])
    values: Sequence[str] = entry.get("values") or ()
    match entry["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                given, bound = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return given > bound if operator == "Gt" else given < bound
    return False


def _covers(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key")
    if not key:
        return toleration.get("operator") == "Exists"
    if key != taint["key"]:
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or toleration.get("value", "") == (taint.get("value") or "")
