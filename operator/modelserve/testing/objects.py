"""What the API server's strategies do to objects: defaults, subresources, preconditions, grace."""

import copy
from collections.abc import Mapping
from typing import Any

from modelserve import errors, ports
from modelserve.api import names
from modelserve.testing import field_owners

WITH_STATUS = (
    *(ports.MODELSERVES, ports.GPUPOOLS, ports.DEPLOYMENTS, ports.REPLICASETS),
    *(ports.PODS, ports.NODES, ports.SERVICES),
)
WITH_GENERATION = (
    *(ports.MODELSERVES, ports.GPUPOOLS, ports.DEPLOYMENTS, ports.REPLICASETS, ports.PODS),
)
WITH_SCALE = (ports.MODELSERVES, ports.DEPLOYMENTS, ports.REPLICASETS)
# A kubelet registers its Node together with what it has.
KEEPS_STATUS_AT_CREATION = (ports.NODES,)

_OURS = (names.GROUP, names.EMULATOR_GROUP)
_IMMUTABLE_METADATA = (
    *("name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"),
)
_POD_GRACE_S = 30


def within(resource: ports.Resource, body: ports.Object, subresource: str) -> dict[str, Any]:
    """The part of an applied body that the (sub)resource looks at."""
    _require(resource, subresource)
    if subresource == "scale":
        return {"spec": {"replicas": _replicas(body)}}
    metadata = {
        k: v for k, v in (body.get("metadata") or {}).items() if k not in _IMMUTABLE_METADATA
    }
    rest: dict[str, Any] = {"metadata": metadata} if metadata else {}
    if subresource == "status":
        rest = rest if resource.group not in _OURS else {}
        return copy.deepcopy({**rest, "status": body.get("status", {})})
    hidden = ("apiVersion", "kind", "metadata", *(("status",) if resource in WITH_STATUS else ()))
    return copy.deepcopy({**rest, **{k: v for k, v in body.items() if k not in hidden}})


def confined(
    resource: ports.Resource, old: ports.Object, wanted: Mapping[str, Any], subresource: str
) -> dict[str, Any]:
    """An updated object, with what this (sub)resource may not touch as it was."""
    _require(resource, subresource)
    fixed = {k: v for k, v in old["metadata"].items() if k in _IMMUTABLE_METADATA}
    asked = {
        k: v for k, v in (wanted.get("metadata") or {}).items() if k not in _IMMUTABLE_METADATA
    }
    new = dict(copy.deepcopy(old if subresource else wanted))
    if subresource == "scale":
        new["spec"] = {**new.get("spec", {}), "replicas": _replicas(wanted)}
        return new
    if subresource == "status":
        new["status"] = copy.deepcopy(wanted.get("status", {}))
        # Built-in kinds let labels and annotations through as well, custom ones only the status.
        if resource.group not in _OURS:
            new["metadata"] = {**copy.deepcopy(asked), **fixed}
        return new
    new |= {"apiVersion": resource.api_version, "kind": resource.kind}
    new["metadata"] = {**copy.deepcopy(asked), **fixed}
    exists = "resourceVersion" in old["metadata"]
    if exists and resource in WITH_STATUS:
        new.pop("status", None)
        if "status" in old:
            new["status"] = copy.deepcopy(old["status"])
    return new


def set_defaults(resource: ports.Resource, body: dict[str, Any]) -> None:
    """The few defaults of the server that this project relies on."""
    if resource in (ports.DEPLOYMENTS, ports.REPLICASETS, ports.MODELSERVES):
        body.setdefault("spec", {}).setdefault("replicas", 1)
    if resource == ports.PODS:
        body.setdefault("spec", {}).setdefault("terminationGracePeriodSeconds", _POD_GRACE_S)
        body.setdefault("status", {}).setdefault("phase", "Pending")


def check_preconditions(current: ports.Object, body: ports.Object) -> None:
    """Raise Conflict if the body names another uid or resource version than the object has."""
    metadata, wanted = current["metadata"], body.get("metadata") or {}
    for key in ("uid", "resourceVersion"):
        if wanted.get(key) and wanted[key] != metadata.get(key):
            raise errors.Conflict(
                f'Operation cannot be fulfilled on "{metadata["name"]}": {key} is '
                f"{metadata.get(key)}, not {wanted[key]}",
                409,
                "Conflict",
            )


def grace_s(resource: ports.Resource, body: ports.Object, asked_s: int | None) -> int:
    """How long a deletion waits for the kubelet; only pods that a node has, wait."""
    bound = resource == ports.PODS and bool(body["spec"].get("nodeName"))
    if not bound or body.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    default = body["spec"].get("terminationGracePeriodSeconds", _POD_GRACE_S)
    return int(default if asked_s is None else asked_s)


def content(body: ports.Object) -> ports.Object:
    """Everything but the resource version: what makes a write a change."""
    metadata = {
        k: v for k, v in body["metadata"].items() if k not in ("resourceVersion", "generation")
    }
    return {**body, "metadata": metadata}


def specification(body: ports.Object) -> ports.Object:
    """Everything but metadata and status: what makes a new generation."""
    return {k: v for k, v in body.items() if k not in ("metadata", "status")}


def to_scale(body: ports.Object) -> ports.Object:
    """The Scale object of a workload."""
    copied = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {k: v for k, v in body["metadata"].items() if k in copied},
        "spec": {"replicas": body["spec"].get("replicas", 0)},
        "status": {"replicas": (body.get("status") or {}).get("replicas", 0)},
    }


def managed_fields(
    resource: ports.Resource, owners: Mapping[tuple[str, str, str], field_owners.Fields]
) -> list[dict[str, Any]]:
    """``metadata.managedFields``, without times."""
    return [
        {
            "manager": manager,
            "operation": operation,
            "apiVersion": resource.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": field_owners.to_fields_v1(fields),
            **({"subresource": subresource} if subresource else {}),
        }
        for (manager, operation, subresource), fields in owners.items()
    ]


def _replicas(body: Mapping[str, Any]) -> int:
    count = (body.get("spec") or {}).get("replicas")
    if not isinstance(count, int) or count < 0:
        raise errors.Invalid(f"spec.replicas: {count!r} must be 0 or more", 422, "Invalid")
    return count


def _require(resource: ports.Resource, subresource: str) -> None:
    known = {"": True, "status": resource in WITH_STATUS, "scale": resource in WITH_SCALE}
    if not known.get(subresource):
        raise errors.NotFound("the server could not find the requested resource", 404, "NotFound")
