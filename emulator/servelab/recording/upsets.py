"""What others do to the node that a pod is recorded on."""

import contextlib
from collections.abc import Mapping, Sequence

from modelserve import errors, ports
from servelab.recording import cases, node

NAMESPACE = "default"


async def taint(cluster: ports.Cluster, taints: Sequence[Mapping[str, str]]) -> None:
    """Give the node these taints, and no others."""
    await cluster.patch(ports.NODES, None, node.NAME, {"spec": {"taints": list(taints) or None}})


async def preempt(cluster: ports.Cluster, case: cases.Case) -> None:
    """A pod of a higher priority wants the same room."""
    rank = {"metadata": {"name": "recording-high"}, "value": 1000}
    kind = ports.Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
    with contextlib.suppress(errors.Conflict):
        await cluster.create(kind, None, rank)
    pod = case.manifest(node.NAME)
    pod["metadata"] = {"name": f"{case.name}-other"}
    pod["spec"]["priorityClassName"] = "recording-high"
    await cluster.create(ports.PODS, NAMESPACE, pod)
