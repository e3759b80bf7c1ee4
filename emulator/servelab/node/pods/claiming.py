"""What a kubelet asks of a pod's resource claims before its containers start."""

from collections.abc import Sequence

from modelserve import errors, ports
from modelserve.api.pool import GPUPoolSpec
from servelab.node.gpus import claims


async def gpus_of(
    cluster: ports.Cluster, pod: ports.Object, node: str, spec: GPUPoolSpec
) -> Sequence[str]:
    """UUIDs of the GPUs on the node that the scheduler allocated to the pod's claims.

    A claim that cannot be read has none.
    """
    found = []
    for name in claims.claim_names(pod).values():
        try:
            namespace = pod["metadata"]["namespace"]
            found.append(await cluster.get(ports.RESOURCE_CLAIMS, namespace, name))
        except errors.ClusterError:
            continue
    return claims.given(found, node, spec.gpus_per_node)
