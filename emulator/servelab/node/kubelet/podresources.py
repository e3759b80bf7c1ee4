"""``status.resources`` and ``status.allocatedResources`` of a pod as a whole.

After kubelet 1.37's convertToAPIPodLevelResourcesStatus: what the spec adds up to, and, once the
API server says that the pod runs, what its cgroup has, which knows of no devices.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from modelserve.ports import Object
from servelab.node.rules import admission, amounts

KINDS = ("limits", "requests")
# All that a cgroup knows of.
_IN_CGROUP = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Sight:
    """What a sync goes by.

    ``running``: so the API server had it when the sync was asked for. ``ran``: so it was told last.
    ``cgroup``: there still is one.
    """

    running: bool
    ran: bool
    cgroup: bool = True


def told(
    pod: Object,
    before: Mapping[str, Any],
    sight: Sight,
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Both fields as parts of a patch: what was told ``before`` and is no more is null.

    ``given``: the spec by which it was last given what it asks for, if it ever was.
    """
    found = {kind: _written(pod, kind, admission.totals(pod, kind)) for kind in KINDS}
    allocated = found["requests"]
    if sight.running:
        if given is not None and given != pod["spec"]:
            pod = {"spec": given}
            found = {kind: _written(pod, kind, admission.totals(pod, kind)) for kind in KINDS}
        kept = before.get("resources") or {} if sight.ran else {}
        found = {kind: _seen(pod, kind, found[kind], kept.get(kind), sight) for kind in KINDS}
    known = before.get("resources") or {}
    resources = {kind: _over(known.get(kind), found[kind]) for kind in KINDS}
    return {
        "resources": {kind: amount for kind, amount in resources.items() if amount},
        "allocatedResources": _over(before.get("allocatedResources"), allocated) or None,
    }


def _over(before: Mapping[str, Any] | None, now: Mapping[str, str]) -> dict[str, str | None]:
    # A write may replace one that still waits: a null stays for good.
    return {**dict.fromkeys(before or ()), **now}


def _seen(
    pod: Object, kind: str, whole: Mapping[str, str], kept: Mapping[str, Any] | None, sight: Sight
) -> dict[str, str]:
    """What the pod's cgroup has; where that has no limit of CPU, the one that was told stays."""
    own = ((pod["spec"].get("resources") or {}).get(kind)) or {}
    found = {name: whole[name] for name in own if name in whole}
    if sight.cgroup:
        found |= _in_cgroup(pod, kind, whole)
    elif kind == "requests" and "memory" in whole:
        found["memory"] = whole["memory"]  # A cgroup does not know it: it is always added up.
    before = (kept or {}).get("cpu")
    return found if "cpu" in found or before is None else {**found, "cpu": before}


def _in_cgroup(pod: Object, kind: str, whole: Mapping[str, str]) -> dict[str, str]:
    """A limit is there only where every container has one."""
    spec = pod["spec"]
    holders = [*spec["containers"], *(spec.get("initContainers") or ())]
    return {
        name: whole[name]
        for name in _IN_CGROUP
        if name in whole and (kind == "requests" or all(_has(holders, kind, name)))
    }


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
