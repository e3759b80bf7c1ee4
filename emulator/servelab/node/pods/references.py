"""Asks the API server for what a pod is made of: ConfigMaps, Secrets, claims, devices."""

from collections.abc import AsyncIterator, Awaitable, Callable

from modelserve import errors, ports
from servelab.node.kubelet import life
from servelab.node.pods import claiming, podspec
from servelab.node.rules import configuration

# Between two looks for a ConfigMap or Secret that is missing.
LOOK_REAL_S = 2.0

_CLAIMS = ports.Resource("", "v1", "persistentvolumeclaims", configuration.CLAIM)
_KINDS = {"Secret": ports.SECRETS, "ConfigMap": ports.CONFIG_MAPS, configuration.CLAIM: _CLAIMS}


async def looked_for(
    pod_life: life.PodLife,
    cluster: ports.Cluster,
    sleep_real: Callable[[float], Awaitable[None]],
) -> AsyncIterator[None]:
    """Look before the pod begins, and until nothing is missing or it is over; after each look."""
    while True:
        found = pod_life.state.missing = await missing(cluster, pod_life.pod)
        yield
        if not found or pod_life.finished:
            return
        await sleep_real(LOOK_REAL_S)


async def missing(cluster: ports.Cluster, pod: podspec.Pod) -> configuration.Missing:
    """Look for everything the pod names."""
    wanted = {spec.name: configuration.references(spec) for spec in pod.containers}
    mounts = configuration.volumes(pod)
    every = {reference for found in wanted.values() for reference in found}
    every |= {reference for volume in mounts for reference in volume.references}
    found = {
        (reference.kind, reference.name): keys
        for reference in every
        if (keys := await _keys(cluster, pod.namespace, reference)) is not None
    }
    environment = {
        spec.name: configuration.fault(pod.namespace, wanted[spec.name], found)
        or configuration.path_fault(spec, found)
        for spec in pod.containers
    }
    return configuration.Missing(
        environment,
        configuration.mount_faults(pod.namespace, mounts, found),
        configuration.claim_fault(pod.namespace, mounts, found),
        await claiming.refused(cluster, pod.raw),
    )


async def _keys(
    cluster: ports.Cluster, namespace: str, reference: configuration.Reference
) -> frozenset[str] | None:
    """The keys it has; None if it does not exist. What we may not see counts as complete."""
    try:
        found = await cluster.get(_KINDS[reference.kind], namespace, reference.name)
    except errors.NotFound:
        return None
    except errors.ClusterError:
        return frozenset(reference.keys)
    if reference.kind == configuration.CLAIM:
        return frozenset([(found.get("status") or {}).get("phase", "")])
    return frozenset({**(found.get("data") or {}), **(found.get("binaryData") or {})})
