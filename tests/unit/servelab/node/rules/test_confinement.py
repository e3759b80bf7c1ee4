"""Pods that a Linux node refuses for what they ask of its kernel."""

from typing import Any

import pytest

from servelab.node.rules import confinement


def pod(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "labels": labels or {}}, "spec": spec}


def setting(*names: str, **spec: Any) -> dict[str, Any]:
    """A pod that sets these sysctls."""
    asked = [{"name": name, "value": "1"} for name in names]
    return pod(securityContext={"sysctls": asked}, **spec)


@pytest.mark.parametrize(
    "fine",
    [
        pod(),
        pod(os={"name": "linux"}),
        pod({"kubernetes.io/os": "linux"}),
        setting("net.ipv4.tcp_syncookies", "kernel.shm_rmid_forced"),
        setting("net/ipv4/ip_local_port_range"),
    ],
    ids=["plain", "os", "label", "safe", "slashes"],
)
def test_what_the_kernel_can_do_is_admitted(fine: dict[str, Any]) -> None:
    assert confinement.refused(fine) is None


@pytest.mark.parametrize(
    ("asks", "why"),
    [
        (setting("kernel.msgmax"), '"kernel.msgmax" not allowlisted'),
        (setting("vm/swappiness"), '"vm.swappiness" not allowlisted'),
        (
            setting("net.ipv4.tcp_syncookies", hostNetwork=True),
            '"net.ipv4.tcp_syncookies" not allowed with host Net enabled',
        ),
        (
            setting("kernel.shm_rmid_forced", hostIPC=True),
            '"kernel.shm_rmid_forced" not allowed with host IPC enabled',
        ),
    ],
    ids=["unsafe", "unknown", "host network", "host IPC"],
)
def test_a_sysctl_that_may_not_be_set_is_forbidden(asks: dict[str, Any], why: str) -> None:
    assert confinement.refused(asks) == ("SysctlForbidden", f"forbidden sysctl: {why}")


def test_a_pod_for_another_operating_system_is_refused() -> None:
    found = confinement.refused(pod(os={"name": "windows"}))
    assert found is not None
    assert found[0] == "PodOSNotSupported"


def test_a_label_of_another_operating_system_is_refused() -> None:
    found = confinement.refused(pod({"kubernetes.io/os": "windows"}))
    assert found is not None
    assert found[0] == "PodOSSelectorNodeLabelDoesNotMatch"
