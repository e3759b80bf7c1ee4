"""Metrics of a node in Prometheus' text: /metrics/resource, /metrics/cadvisor and /metrics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servelab.node.machines import usage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """One running container."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    image: str
    container_id: str
    used: usage.Usage


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with its running containers, at a moment."""

    name: str
    version: str
    cores: float
    memory_bytes: int
    used: usage.Usage
    containers: Sequence[ContainerRow]
    pods: int
    at_unix_s: float

    def by_pod(self) -> Mapping[tuple[str, str], tuple[float, int]]:
        """Processor seconds and working set by namespace and name."""
        found: dict[tuple[str, str], list[usage.Usage]] = {}
        for row in self.containers:
            found.setdefault((row.namespace, row.pod), []).append(row.used)
        return {key: usage.pod(used) for key, used in found.items()}


def resource(node: NodeRow) -> str:
    """What metrics-server reads."""
    at = f" {int(node.at_unix_s * 1000)}"
    rows, pods = node.containers, sorted(node.by_pod().items())
    cpu, size = "Cumulative cpu time consumed by the", "Current working set of the"
    parts = [
        _family(
            "container_cpu_usage_seconds_total",
            "counter",
            f"[STABLE] {cpu} container in core-seconds",
            (f"{_container(row)} {_number(row.used.cpu_s)}{at}" for row in rows),
        ),
        _family(
            "container_memory_working_set_bytes",
            "gauge",
            f"[STABLE] {size} container in bytes",
            (f"{_container(row)} {_number(row.used.memory_bytes)}{at}" for row in rows),
        ),
        _family(
            "container_start_time_seconds",
            "gauge",
            "[STABLE] Start time of the container since unix epoch in seconds",
            (f"{_container(row)} {_number(row.used.started_unix_s)}" for row in rows),
        ),
        _family(
            "node_cpu_usage_seconds_total",
            "counter",
            f"[STABLE] {cpu} node in core-seconds",
            (f" {_number(node.used.cpu_s)}{at}",),
        ),
        _family(
            "node_memory_working_set_bytes",
            "gauge",
            f"[STABLE] {size} node in bytes",
            (f" {_number(node.used.memory_bytes)}{at}",),
        ),
        _family(
            "pod_cpu_usage_seconds_total",
            "counter",
            f"[STABLE] {cpu} pod in core-seconds",
            (f"{_pod(*key)} {_number(seconds)}{at}" for key, (seconds, _) in pods),
        ),
        _family(
            "pod_memory_working_set_bytes",
            "gauge",
            f"[STABLE] {size} pod in bytes",
            (f"{_pod(*key)} {_number(memory)}{at}" for key, (_, memory) in pods),
        ),
        _family("resource_scrape_error", "gauge", f"[STABLE] {_SCRAPE_ERROR}", (" 0",)),
        _family(
            "scrape_error",
            "gauge",
            f"[ALPHA] (Deprecated since 1.29.0) {_SCRAPE_ERROR}",
            (" 0",),
        ),
    ]
    return "".join(parts)


def cadvisor(node: NodeRow) -> str:
    """The series of cAdvisor that dashboards use, of containers and of the machine."""
    at, rows = f" {int(node.at_unix_s * 1000)}", node.containers
    parts = [
        _family(
            "container_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed in seconds.",
            (f"{_cgroup(row, cpu='total')} {_number(row.used.cpu_s)}{at}" for row in rows),
        ),
        _family(
            "container_memory_rss",
            "gauge",
            "Size of RSS in bytes.",
            (f"{_cgroup(row)} {_number(row.used.memory_bytes)}{at}" for row in rows),
        ),
        _family(
            "container_memory_working_set_bytes",
            "gauge",
            "Current working set in bytes.",
            (f"{_cgroup(row)} {_number(row.used.memory_bytes)}{at}" for row in rows),
        ),
        _family(
            "container_start_time_seconds",
            "gauge",
            "Start time of the container since unix epoch in seconds.",
            (f"{_cgroup(row)} {_number(row.used.started_unix_s)}{at}" for row in rows),
        ),
        _family(
            "machine_cpu_cores",
            "gauge",
            "Number of logical CPU cores.",
            (f'{{boot_id="",machine_id="",system_uuid=""}} {node.cores:g}',),
        ),
        _family(
            "machine_memory_bytes",
            "gauge",
            "Amount of memory installed on the machine.",
            (f'{{boot_id="",machine_id="",system_uuid=""}} {_number(node.memory_bytes)}',),
        ),
    ]
    return "".join(parts)


def kubelet(node: NodeRow) -> str:
    """A kubelet's own."""
    build = {"git_version": node.version, "platform": "linux/amd64"}
    parts = [
        _family(
            "kubelet_active_pods",
            "gauge",
            "[ALPHA] The number of pods the kubelet considers active and which are being considered"
            " when admitting new pods. static is true if the pod is not from the apiserver.",
            (f'{{static=""}} {node.pods}',),
        ),
        _family(
            "kubelet_node_name",
            "gauge",
            "[ALPHA] The node's name. The count is always 1.",
            (f"{_labels({'node': node.name})} 1",),
        ),
        _family(
            "kubelet_running_containers",
            "gauge",
            "[ALPHA] Number of containers currently running",
            (f'{{container_state="running"}} {len(node.containers)}',),
        ),
        _family(
            "kubelet_running_pods",
            "gauge",
            "[ALPHA] Number of pods that have a running pod sandbox",
            (f" {len(node.by_pod())}",),
        ),
        _family(
            "kubernetes_build_info",
            "gauge",
            "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git "
            "commit, git tree state, build date, Go version, and compiler from which Kubernetes was"
            " built, and platform on which it is running.",
            (f"{_labels(build)} 1",),
        ),
    ]
    return "".join(parts)


_SCRAPE_ERROR = "1 if there was an error while getting container metrics, 0 otherwise"


def _family(name: str, kind: str, text: str, samples: Iterable[str]) -> str:
    lines = [f"{name}{sample}\n" for sample in samples]
    return "".join((f"# HELP {name} {text}\n# TYPE {name} {kind}\n", *lines)) if lines else ""


def _container(row: ContainerRow) -> str:
    found = {"container": row.container, "namespace": row.namespace, "pod": row.pod}
    return _labels(found)


def _pod(namespace: str, name: str) -> str:
    return _labels({"namespace": namespace, "pod": name})


def _cgroup(row: ContainerRow, **more: str) -> str:
    short = row.container_id.rpartition("/")[2]
    path = f"/kubepods/burstable/pod{row.pod_uid}/{short}"
    found = {"container": row.container, **more, "id": path, "image": row.image, "name": short}
    return _labels(found | {"namespace": row.namespace, "pod": row.pod})


def _labels(found: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in found.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """Nanoseconds of seconds, and every byte."""
    return f"{value:.9f}".rstrip("0").rstrip(".")
