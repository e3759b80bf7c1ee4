"""``status.resources`` and ``status.allocatedResources`` of a pod as a whole.

After kubelet 1.37's convertToAPIPodLevelResourcesStatus: what the spec adds up to, and, once the
API server says that the pod runs, what its cgroup has.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from modelserve.ports import Object
from servelab.node import admission, amounts

KINDS = ("limits", "requests")
# All that a cgroup knows of.
_IN_CGROUP = ("cpu", "memory")


def told(pod: Object, before: Mapping[str, Any]) -> dict[str, Any]:
    """Both fields as parts of a patch: what was told ``before`` and is no more is null."""
    found = {kind: _written(pod, kind, admission.totals(pod, kind)) for kind in KINDS}
    allocated = found["requests"]
    if (pod.get("status") or {}).get("phase") == "Running":
        found = {kind: _in_cgroup(pod, kind, found[kind]) for kind in KINDS}
    known = before.get("resources") or {}
    resources = {kind: _over(known.get(kind), found[kind]) for kind in KINDS}
    return {
        "resources": {kind: amount for kind, amount in resources.items() if amount},
        "allocatedResources": _over(before.get("allocatedResources"), allocated) or None,
    }


def _over(before: Mapping[str, Any] | None, now: Mapping[str, str]) -> dict[str, str | None]:
    # A write may replace one that still waits: a null stays for good.
    return {**dict.fromkeys(before or ()), **now}


def _in_cgroup(pod: Object, kind: str, whole: Mapping[str, str]) -> dict[str, str]:
    """A limit is there only where every container has one, or the pod itself."""
    spec = pod["spec"]
    holders = [*spec["containers"], *(spec.get("initContainers") or ())]
    own = ((spec.get("resources") or {}).get(kind)) or {}
    named = {
        name
        for name in _IN_CGROUP
        if name in whole and (kind == "requests" or name in own or all(_has(holders, kind, name)))
    }
    return {name: text for name, text in whole.items() if name in named}


def _has(holders: Iterable[Mapping[str, Any]], kind: str, name: str) -> Iterable[bool]:
    return (name in ((each.get("resources") or {}).get(kind) or {}) for each in holders)


def _written(pod: Object, kind: str, whole: Mapping[str, Decimal]) -> dict[str, str]:
    """Each in the form in which the spec has it first."""
    spec = pod["spec"]
    holders = [*spec["containers"], *(spec.get("initContainers") or ()), spec]
    asked = [(each.get("resources") or {}) for each in holders]
    forms: dict[str, str] = {}
    for resources in asked:
        for name, text in {
            **(resources.get("limits") or {}),
            **(resources.get(kind) or {}),
        }.items():
            forms.setdefault(name, str(text))
    return {name: amounts.write(amount, forms.get(name, "")) for name, amount in whole.items()}
