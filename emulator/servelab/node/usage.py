"""GPUs that pods take, as the scheduler counts them."""

from collections.abc import Iterable, Mapping

from modelserve.ports import Object

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


def gpus_by_node(pods: Iterable[Object]) -> Mapping[str, int]:
    """GPUs requested by the pods of each node that have not ended."""
    counts: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        if node and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            counts[node] = counts.get(node, 0) + gpus_of(pod)
    return counts


def gpus_of(pod: Object) -> int:
    """GPUs of one pod: the sum of its containers, or of its largest init container."""
    spec = pod["spec"]
    main = sum(_requested(container) for container in spec["containers"])
    init = max((_requested(container) for container in spec.get("initContainers") or ()), default=0)
    return max(main, init)


def _requested(container: Mapping[str, Mapping[str, Mapping[str, str]]]) -> int:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return sum(int(amounts.get(name, 0)) for name in GPU_RESOURCES)
