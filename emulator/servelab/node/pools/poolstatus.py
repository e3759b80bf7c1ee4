"""The status of a GPUPool (pure rendering)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from modelserve.api import conditions, timestamps
from modelserve.api import pods as pod_facts
from modelserve.api.pool import GPUPoolSpec
from modelserve.catalog import gpus
from modelserve.ports import Object
from servelab.node.gpus import labels
from servelab.node.pools import draining, growth


def refused(owner: Object, why: str, now_s: float) -> dict[str, Any]:
    """Of a pool that cannot be; its nodes, if it had any before, stay as they are."""
    return _render(owner, {}, ("False", "InvalidSpec", why), now_s)


def kept(
    owner: Object,
    spec: GPUPoolSpec,
    gpu: gpus.Gpu,
    nodes: Sequence[Object],
    wanted: int,
    booting: Mapping[str, float],
    idle: Mapping[str, float],
    pods: Iterable[Object],
    now_s: float,
) -> dict[str, Any]:
    """Of a pool with these nodes, of which ``wanted`` should stand.

    ``booting`` are machines without a node yet, with the time they are up, and ``idle`` nodes that
    may go, with the time since when.
    """
    ready = sum(conditions.is_true(node, "Ready") for node in nodes)
    advertised = [node for node in nodes if growth.is_advertised(node)]
    going = sum(draining.gone_at_s(node) is not None for node in nodes)
    there = {node["metadata"]["name"] for node in nodes}
    coming = len(set(booting) - there) + len(nodes) - len(advertised)
    devices = labels.resources(spec, gpu)
    requests = gpus_by_node(pods, devices)
    numbers = {
        "nodes": len(nodes),
        "readyNodes": ready,
        "provisioningNodes": coming,
        "drainingNodes": going,
        "gpus": len(advertised) * sum(devices.values() or [spec.gpus_per_node]),
        "gpusInUse": sum(requests.get(name, 0) for name in there),
    }
    found = _render(owner, numbers, _condition(ready, len(nodes), wanted, coming, going), now_s)
    on_their_way = sorted((name, at_s) for name, at_s in booting.items() if name not in there)
    up = [(name, timestamps.format_micro_time(at_s)) for name, at_s in on_their_way]
    resting = sorted((name, at_s) for name, at_s in idle.items() if name in there)
    since = [(name, timestamps.format_micro_time(at_s)) for name, at_s in resting]
    return found | {
        "booting": [{"node": name, "upAt": at} for name, at in up],
        "idle": [{"node": name, "since": at} for name, at in since],
    }


def booting(owner: Object) -> dict[str, float]:
    """The machines that boot, and when they are up, Unix seconds: as the status tells."""
    return _times(owner, "booting", "upAt")


def idle(owner: Object) -> dict[str, float]:
    """The nodes without a pod, and since when, Unix seconds: as the status tells."""
    return _times(owner, "idle", "since")


def _times(owner: Object, kind: str, key: str) -> dict[str, float]:
    listed = (owner.get("status") or {}).get(kind) or ()
    found = {each["node"]: timestamps.parse_if_any(each[key]) for each in listed}
    return {name: at_s for name, at_s in found.items() if at_s is not None}


def gpus_by_node(
    pods: Iterable[Object], resources: Collection[str] = ("nvidia.com/gpu", "amd.com/gpu")
) -> Mapping[str, int]:
    """GPUs, or slices, requested by the pods of each node that have not ended."""
    counts: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        if node and not pod_facts.is_over(pod):
            counts[node] = counts.get(node, 0) + _asked(pod, resources)
    return counts


def _asked(pod: Object, resources: Collection[str]) -> int:
    """The sum of its containers, or its largest init container."""
    spec = pod["spec"]
    mains = sum(_of_container(each, resources) for each in spec.get("containers") or ())
    inits = (_of_container(each, resources) for each in spec.get("initContainers") or ())
    return max([mains, *inits])


def _of_container(container: Mapping[str, Any], resources: Collection[str]) -> int:
    found = container.get("resources") or {}
    wanted = {**(found.get("limits") or {}), **(found.get("requests") or {})}
    amounts = (str(wanted.get(name, 0)) for name in resources)
    return sum(int(amount) for amount in amounts if amount.isdecimal())


def _condition(
    ready: int, nodes: int, wanted: int, coming: int, going: int
) -> tuple[str, str, str]:
    more = f", {coming} more on their way" if coming else ""
    less = f", {going} on their way out" if going else ""
    if ready >= wanted and nodes - going == wanted:
        return "True", "NodesReady", f"all {wanted} nodes are ready{more}{less}"
    return "False", "NodesNotReady", f"{ready} of {wanted} nodes are ready{more}{less}"


def _render(
    owner: Object, numbers: Mapping[str, int], condition: tuple[str, str, str], now_s: float
) -> dict[str, Any]:
    generation = owner["metadata"].get("generation", 1)
    status, reason, message = condition
    old = conditions.find(owner, "Ready")
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    keys = ("nodes", "readyNodes", "provisioningNodes", "drainingNodes", "gpus", "gpusInUse")
    return {
        "observedGeneration": generation,
        **dict.fromkeys(keys, 0),
        **numbers,
        "booting": [],
        "idle": [],
        "conditions": [
            {
                "type": "Ready",
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since or timestamps.format_time(now_s),
                "observedGeneration": generation,
            }
        ],
    }
