"""What the API server lets a client write that does nothing else: the measure for the emulator.

Its requests are the emulator's: status patches of pods, and events about them.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from modelserve import errors, ports
from modelserve.api import timestamps

NAMESPACE = "bench-bare"
NODE = "bench-bare"
IMAGE = "docker.io/library/busybox:1.37"
CONCURRENCY = 64


@contextlib.asynccontextmanager
async def pods(cluster: ports.Cluster, count: int, spec: ports.Object) -> AsyncIterator[list[str]]:
    """So many pods in a namespace of their own, on a node that nobody plays; their names."""
    metadata = {"name": NAMESPACE}
    with contextlib.suppress(errors.Conflict):
        await cluster.create(_NAMESPACES, None, {"metadata": metadata})
    await cluster.create(ports.NODES, None, {"metadata": {"name": NODE}})
    names = [f"bare-{number}" for number in range(count)]
    limit = asyncio.Semaphore(CONCURRENCY)

    async def make(name: str) -> None:
        async with limit:
            body = {"metadata": {"name": name}, "spec": {**spec, "nodeName": NODE}}
            await cluster.create(ports.PODS, NAMESPACE, body)

    async def remove(name: str) -> None:
        async with limit:
            with contextlib.suppress(errors.NotFound):
                await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)

    try:
        await asyncio.gather(*map(make, names))
        yield names
    finally:
        await asyncio.gather(*map(remove, names))
        await cluster.delete(ports.NODES, None, NODE)


async def writes_per_s(
    cluster: ports.Cluster,
    names: Sequence[str],
    statuses: Sequence[ports.Object],
    events: Sequence[ports.Object],
) -> float:
    """How many writes a second get through: for each pod all of these, one after the other."""
    limit = asyncio.Semaphore(CONCURRENCY)

    async def write(name: str) -> None:
        async with limit:
            for status in statuses:
                await cluster.patch(
                    ports.PODS,
                    NAMESPACE,
                    name,
                    {"status": status},
                    content_type=ports.STRATEGIC_PATCH,
                    subresource="status",
                )
            for number, event in enumerate(events):
                await cluster.create(ports.EVENTS, NAMESPACE, _about(event, name, number))

    begun_real_s = time.monotonic()
    await asyncio.gather(*map(write, names))
    took_s = time.monotonic() - begun_real_s
    return len(names) * (len(statuses) + len(events)) / took_s


_NAMESPACES = ports.Resource("", "v1", "namespaces", "Namespace", namespaced=False)


def _about(event: ports.Object, name: str, number: int) -> dict[str, Any]:
    """The same event about another pod."""
    involved = {**event["involvedObject"], "name": name, "namespace": NAMESPACE}
    stamp = f"{name}.{time.time_ns():x}{number}"
    kept = {k: v for k, v in event.items() if k not in ("metadata", "involvedObject")}
    metadata = {"name": stamp, "namespace": NAMESPACE}
    return {**kept, "metadata": metadata, "involvedObject": involved}


def status(number: int) -> Mapping[str, Any]:
    """A pod's status about as large as a kubelet writes it; each number's is another."""
    now = timestamps.format_time(time.time())
    truth = "True" if number else "False"
    conditions = [
        {"type": kind, "status": truth, "lastTransitionTime": now, "observedGeneration": 1}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    ]
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    if number:
        state = {"running": {"startedAt": now}}
    container = {
        "name": "main",
        "image": IMAGE,
        "imageID": "sha256:" + "0" * 64 if number else "",
        "containerID": "containerd://" + "0" * 64 if number else "",
        "ready": bool(number),
        "started": bool(number),
        "restartCount": 0,
        "state": state,
    }
    status = {"conditions": conditions, "containerStatuses": [container], "hostIP": "127.0.0.1"}
    return {**status, "phase": "Running" if number else "Pending", "startTime": now}


def event(number: int) -> Mapping[str, Any]:
    """An event about a pod as a kubelet writes it; each number's is another."""
    now = timestamps.format_time(time.time())
    return {
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "fieldPath": "spec.containers{main}"},
        "type": "Normal",
        "reason": f"Created{number}",
        "message": 'Container image "docker.io/library/busybox:1.37" already present on machine',
        "source": {"component": "bench", "host": NODE},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "reportingComponent": "bench",
        "reportingInstance": NODE,
    }
