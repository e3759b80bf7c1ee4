"""What a process finds inside a container that a command enters: environment, processes, files."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api import timestamps
from servelab.node.gpus import labels, migtable, readings, slots, smi
from servelab.node.pods import podspec
from servelab.node.serving import engines, hosting, inspecting
from servelab.node.shell import inside

PATH = "/usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_REFERENCE = re.compile(r"\$\((\w+)\)|\$\$")
_API_HOST, _API_PORT = "10.96.0.1", "443"


def view(found: hosting.Found, inspector: inspecting.Inspector) -> inside.Inside:
    """The container as it is now. ``inspector`` has been refreshed."""
    pod, host = found.served.pod, inspector.host
    node = host.served_nodes()[pod.node]
    gpus = inspector.given(found)
    cores, memory_bytes = inspecting.capacity(node)
    now = host.unix_s()
    node_use = inspector.used_on(node)
    return inside.Inside(
        hostname=hostname(pod),
        pod_ip=_ip(found),
        namespace=pod.namespace,
        env=environment(found, gpus or ()),
        processes=_processes(found, inspector, now),
        cpus=max(1, int(cores)),
        memory_bytes=memory_bytes,
        memory_used_bytes=node_use.memory_bytes,
        booted_unix_s=timestamps.parse_time(node.object["metadata"]["creationTimestamp"]),
        now_unix_s=now,
        kernel=str(node.object["status"]["nodeInfo"]["kernelVersion"]),
        nvidia=None if gpus is None else smi_view(gpus, now, inspector.slices(found)),
        mounts=tuple(m["mountPath"] for m in found.container.raw.get("volumeMounts") or ()),
        files=_files(pod, found.container),
    )


def smi_view(
    gpus: Sequence[readings.Reading], now_unix_s: float, slices: Sequence[migtable.Slice] = ()
) -> smi.View:
    """What ``nvidia-smi`` sees with these GPUs."""
    driver, cuda = ".".join(labels.DRIVER), ".".join(labels.CUDA)
    return smi.View(gpus, driver, cuda, now_unix_s, slices)


def hostname(pod: podspec.Pod) -> str:
    """A pod's host name, at most 63 characters of it."""
    spec = pod.raw["spec"]
    if spec.get("hostNetwork"):
        return pod.node
    return str(spec.get("hostname") or pod.name)[:63].rstrip("-.")


def environment(found: hosting.Found, gpus: Sequence[readings.Reading]) -> Mapping[str, str]:
    """Its variables. Those from ConfigMaps and Secrets are left out: their values are not read."""
    pod = found.served.pod
    env = {
        "PATH": PATH,
        "HOSTNAME": hostname(pod),
        "HOME": "/root",
        "KUBERNETES_SERVICE_HOST": _API_HOST,
        "KUBERNETES_SERVICE_PORT": _API_PORT,
        "KUBERNETES_SERVICE_PORT_HTTPS": _API_PORT,
        "KUBERNETES_PORT": f"tcp://{_API_HOST}:{_API_PORT}",
    }
    # Slices and claimed GPUs are told on the pod.
    visible = [each.device.uuid for each in gpus] or slots.told(pod.raw)
    if visible and _wants_gpus(found.container.raw):
        env |= {
            "NVIDIA_VISIBLE_DEVICES": ",".join(visible),
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "CUDA_VERSION": f"{'.'.join(labels.CUDA)}.1",
        }
    for variable in found.container.raw.get("env") or ():
        value = _value(variable, found)
        if value is not None:
            env[variable["name"]] = _expand(value, env)
    return env


def _wants_gpus(container: Mapping[str, Any]) -> bool:
    """Whether it asks for GPUs, slices of them, or claims."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    devices = any(name.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) for name in asked)
    return devices or bool(resources.get("claims"))


def _value(variable: Mapping[str, Any], found: hosting.Found) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value") or "")
    path = str((source.get("fieldRef") or {}).get("fieldPath", ""))
    if path:
        return _field(path, found)
    resource = source.get("resourceFieldRef")
    if resource:
        kind, _, name = str(resource.get("resource", "")).partition(".")
        amounts = (found.container.raw.get("resources") or {}).get(kind) or {}
        return str(amounts.get(name, "0"))
    return None


def _field(path: str, found: hosting.Found) -> str:
    pod = found.served.pod
    meta, spec = pod.raw["metadata"], pod.raw["spec"]
    status = pod.raw.get("status") or {}
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if match:
        return str((meta.get(match[1]) or {}).get(match[2], ""))
    known = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": _ip(found),
        "status.podIPs": _ip(found),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
    }
    return str(known.get(path, ""))


def _expand(value: str, env: Mapping[str, str]) -> str:
    def replace(match: re.Match[str]) -> str:
        return "$" if match[1] is None else env.get(match[1], match[0])

    return _REFERENCE.sub(replace, value)


def _processes(
    found: hosting.Found, inspector: inspecting.Inspector, now: float
) -> tuple[inside.Process, ...]:
    used = inspector.used_by(found)
    began = found.started_unix_s
    command = engines.command_line(found.container)
    engine = inspector.engine(found.served.pod, found.container.name)
    others = engine.processes() if engine else ()
    share = 1 / (len(others) + 1)
    rows = [(1, 0, command, began)]
    rows += [
        (pid, 1, name, min(now, began + 4 + place)) for place, (pid, name) in enumerate(others)
    ]
    return tuple(
        inside.Process(
            pid,
            parent,
            name,
            started,
            used.cpu_s * share,
            round(used.memory_bytes * share),
            round(used.memory_bytes * (4 if engine else 1)),
        )
        for pid, parent, name, started in rows
    )


def _files(pod: podspec.Pod, container: podspec.Container) -> Mapping[str, str]:
    files = {"/dev/termination-log": ""}
    mounts = {m["mountPath"] for m in container.raw.get("volumeMounts") or ()}
    if SERVICE_ACCOUNT in mounts:
        # A token would let its reader act as somebody at the API server: there is none here.
        files[f"{SERVICE_ACCOUNT}/namespace"] = pod.namespace
    return files


def _ip(found: hosting.Found) -> str:
    return str((found.served.pod.raw.get("status") or {}).get("podIP") or "")
