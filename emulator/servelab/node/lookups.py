"""Asks the API server which ConfigMaps and Secrets a pod misses."""

from modelserve import errors, ports
from servelab.node import configuration, podspec, wording


async def missing(cluster: ports.Cluster, pod: podspec.Pod) -> tuple[dict[str, str], str]:
    """What a kubelet says of each container's environment, and of the first volume in want."""
    wanted = {spec.name: configuration.references(spec) for spec in pod.containers}
    mounts = configuration.volumes(pod)
    every = {reference for found in wanted.values() for reference in found}
    every |= {reference for _, reference in mounts}
    found = {
        (reference.kind, reference.name): keys
        for reference in every
        if (keys := await _keys(cluster, pod.namespace, reference)) is not None
    }
    faults = {
        name: configuration.fault(pod.namespace, references, found)
        for name, references in wanted.items()
    }
    unmounted = (
        wording.mount_failed(volume, why)
        for volume, reference in mounts
        if (why := configuration.fault(pod.namespace, [reference], found))
    )
    return faults, next(unmounted, "")


async def _keys(
    cluster: ports.Cluster, namespace: str, reference: configuration.Reference
) -> frozenset[str] | None:
    """The keys it has; None if it does not exist. What we may not see counts as complete."""
    kind = ports.SECRETS if reference.kind == "Secret" else ports.CONFIG_MAPS
    try:
        found = await cluster.get(kind, namespace, reference.name)
    except errors.NotFound:
        return None
    except errors.ClusterError:
        return frozenset([reference.key])
    return frozenset({**(found.get("data") or {}), **(found.get("binaryData") or {})})
