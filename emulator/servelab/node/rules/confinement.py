"""Pods that a Linux node refuses for what they ask of its kernel: operating system and sysctls.

After kubelet 1.37's pkg/kubelet/lifecycle/predicate.go and pkg/kubelet/sysctl.
"""

from collections.abc import Mapping
from typing import Any

from modelserve.ports import Object

_OS_LABEL = "kubernetes.io/os"
_LINUX = "linux"
# Each belongs to a namespace that a pod may share with the node.
_SAFE = {
    "kernel.shm_rmid_forced": "IPC",
    **dict.fromkeys(
        (
            "net.ipv4.ip_local_port_range",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.ping_group_range",
            "net.ipv4.ip_unprivileged_port_start",
            "net.ipv4.ip_local_reserved_ports",
            "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_wmem",
            "net.ipv4.tcp_slow_start_after_idle",
            "net.ipv4.tcp_notsent_lowat",
        ),
        "Net",
    ),
}
_SHARED = {"IPC": "hostIPC", "Net": "hostNetwork"}


def refused(pod: Object) -> tuple[str, str] | None:
    """A kubelet's reason and message; None if it would go on."""
    spec = pod["spec"]
    for asked in (spec.get("securityContext") or {}).get("sysctls") or ():
        why = _forbidden(_dotted(str(asked["name"])), spec)
        if why:
            return "SysctlForbidden", f"forbidden sysctl: {why}"
    label = (pod["metadata"].get("labels") or {}).get(_OS_LABEL, _LINUX)
    if label != _LINUX:
        text = f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
        return "PodOSSelectorNodeLabelDoesNotMatch", text
    if (spec.get("os") or {}).get("name", _LINUX) != _LINUX:
        return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    return None


def _forbidden(name: str, spec: Mapping[str, Any]) -> str:
    """Why the sysctl may not be set; empty if it may."""
    namespace = _SAFE.get(name)
    if namespace is None:
        return f'"{name}" not allowlisted'
    shared = spec.get(_SHARED[namespace])
    return f'"{name}" not allowed with host {namespace} enabled' if shared else ""


def _dotted(name: str) -> str:
    """A sysctl may be written with slashes, and then has dots inside its parts."""
    first = next((c for c in name if c in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))
