"""What gateway, operator and emulator read from pods, in one place so that they agree.

Pods are the API's own JSON, whoever wrote them: what is missing or malformed never raises.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api import conditions, names

_GPU_SUFFIX = "/gpu"


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether all its containers have ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether Kubernetes calls it ready."""
    return conditions.is_true(pod, "Ready")


def annotations(pod: Mapping[str, Any]) -> Mapping[str, str]:
    """Its annotations; empty if it has none."""
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found


def deletion_cost(pod: Mapping[str, Any]) -> int | None:
    """The pod deletion cost; None where it is not set, or is no number."""
    text = annotations(pod).get(names.POD_DELETION_COST, "")
    try:
        return int(text)
    except ValueError:
        return None


def engine_container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container named for the engine, else the first; empty if there is none."""
    containers: Sequence[Mapping[str, Any]] = (pod.get("spec") or {}).get("containers") or [{}]
    named = (c for c in containers if c.get("name") == names.ENGINE_CONTAINER)
    return next(named, containers[0])


def dial_address(pod: Mapping[str, Any], *, virtual: bool, port: int | None = None) -> str:
    """``host:port`` of the engine; empty while there is none.

    The annotation counts only on nodes labelled ``virtual``: anywhere else it would let whoever may
    write a pod send requests where they like. A pod that has it has no other address, though: its
    IP leads nowhere, or to a stranger, while its node is deleted or not seen yet. ``port`` is
    another one of the pod's than the API's.
    """
    dial = annotations(pod).get(names.DIAL, "")
    if virtual or dial:
        return dial if virtual else ""
    ip = str((pod.get("status") or {}).get("podIP") or "")
    if not ip:
        return ""
    port = port or _port(engine_container(pod))
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def gpus(pod: Mapping[str, Any]) -> Mapping[str, int]:
    """GPUs it asks for, by resource name (``nvidia.com/gpu``), as the scheduler counts them.

    That is the sum of its containers, or its largest init container.
    """
    spec = pod.get("spec") or {}
    totals: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for resource, count in _gpus(container).items():
            totals[resource] = totals.get(resource, 0) + count
    for container in spec.get("initContainers") or ():
        for resource, count in _gpus(container).items():
            totals[resource] = max(totals.get(resource, 0), count)
    return totals


def _gpus(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    # A count with a suffix (1k) is more than any node has.
    return {
        resource: int(amount)
        for resource, amount in wanted.items()
        if resource.endswith(_GPU_SUFFIX) and str(amount).isdecimal()
    }


def _port(container: Mapping[str, Any]) -> int:
    ports = container.get("ports") or ()
    named = (p["containerPort"] for p in ports if p.get("name") == names.ENGINE_PORT_NAME)
    return int(next(named, names.ENGINE_PORT))
