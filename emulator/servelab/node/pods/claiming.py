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


async def refused(cluster: ports.Cluster, pod: ports.Object) -> str:
    """Why a kubelet does not prepare the pod's claims (``prepareResources``); empty if it does.

    What we may not see counts as prepared.
    """
    meta, named = pod["metadata"], claims.claim_names(pod)
    told = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    known = {entry["name"] for entry in told}
    for entry in pod["spec"].get("resourceClaims") or ():
        name = named.get(entry["name"])
        if name is None:
            if entry["name"] in known:
                continue  # The controller found that none is needed.
            return f'pod "{meta["namespace"]}/{meta["name"]}": ResourceClaim not created yet'
        try:
            claim = await cluster.get(ports.RESOURCE_CLAIMS, meta["namespace"], name)
        except errors.NotFound:
            missing = f'resourceclaims.resource.k8s.io "{name}" not found'
            return f"fetch ResourceClaim {name}: {missing}"
        except errors.ClusterError:
            continue
        why = claims.not_allowed(claim, pod, made="resourceClaimTemplateName" in entry)
        if why:
            return why
    return ""
