"""``/stats/summary``: what a node and its pods use, as JSON (stats/v1alpha1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api import timestamps
from servelab.node.gpus import readings
from servelab.node.serving import exposition

NANO = 1e9


def render(
    node: exposition.NodeRow,
    before: Mapping[tuple[str, ...], float],
    window_s: float,
    gpus: Sequence[readings.Reading] = (),
) -> dict[str, Any]:
    """``before`` is the processor time by key (``key_of``) so many seconds ago."""

    def cpu(used: float, key: tuple[str, ...]) -> dict[str, Any]:
        body: dict[str, Any] = {"time": at, "usageCoreNanoSeconds": round(used * NANO)}
        if key in before and window_s > 0:
            rate = max(0.0, used - before[key]) / window_s
            body["usageNanoCores"] = round(rate * NANO)
        return body

    at = timestamps.format_time(node.at_unix_s)
    pods = []
    for (namespace, name), (used_s, memory) in sorted(node.by_pod().items()):
        rows = [r for r in node.containers if (r.namespace, r.pod) == (namespace, name)]
        first = min(row.used.started_unix_s for row in rows)
        pods.append(
            {
                "podRef": {"name": name, "namespace": namespace, "uid": rows[0].pod_uid},
                "startTime": timestamps.format_time(first),
                "containers": [
                    {
                        "name": row.container,
                        "startTime": timestamps.format_time(row.used.started_unix_s),
                        "cpu": cpu(row.used.cpu_s, key_of(row)),
                        "memory": _memory(at, row.used.memory_bytes),
                        **_accelerators(row, gpus),
                    }
                    for row in rows
                ],
                "cpu": cpu(used_s, (namespace, name)),
                "memory": _memory(at, memory),
            }
        )
    return {
        "node": {
            "nodeName": node.name,
            "startTime": timestamps.format_time(node.used.started_unix_s),
            "cpu": cpu(node.used.cpu_s, ()),
            "memory": _memory(at, node.used.memory_bytes, node.memory_bytes),
        },
        "pods": pods,
    }


def key_of(row: exposition.ContainerRow) -> tuple[str, ...]:
    """What a container's processor time is kept under; a pod's has no container, a node's none."""
    return (row.namespace, row.pod, row.container)


def times(node: exposition.NodeRow) -> dict[tuple[str, ...], float]:
    """Processor times to compare the next look with."""
    found: dict[tuple[str, ...], float] = {key_of(row): row.used.cpu_s for row in node.containers}
    found |= {key: seconds for key, (seconds, _) in node.by_pod().items()}
    return found | {(): node.used.cpu_s}


def _memory(at: str, used: int, most: int | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"time": at, "usageBytes": used, "workingSetBytes": used}
    body["rssBytes"] = used
    return body | ({"availableBytes": max(0, most - used)} if most is not None else {})


def _accelerators(row: exposition.ContainerRow, gpus: Sequence[readings.Reading]) -> dict[str, Any]:
    wanted = (row.namespace, row.pod, row.container)
    found = [
        {
            "make": "nvidia",
            "model": each.gpu.title,
            "id": each.device.uuid,
            "memoryTotal": each.total_bytes,
            "memoryUsed": each.used_bytes,
            "dutyCycle": round(each.activity.busy * 100),
        }
        for each in gpus
        if each.holder and each.holder.container_key == wanted
    ]
    return {"accelerators": found} if found else {}
