"""Which Kubernetes and etcd the local cluster runs, and the names their releases have."""

import dataclasses
import enum
import platform
import sys
from collections.abc import Sequence

from modelserve import errors

KUBERNETES = "v1.37.2"
ETCD = "v3.7.3"


class Component(enum.StrEnum):
    """The four binaries of a control plane."""

    ETCD = "etcd"
    APISERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"

    @property
    def version(self) -> str:
        """The version this project is built and tested with."""
        return ETCD if self is Component.ETCD else KUBERNETES


ALL: Sequence[Component] = tuple(Component)


@dataclasses.dataclass(frozen=True, slots=True)
class Platform:
    """Operating system and processor, in the words of Go's releases."""

    system: str
    processor: str


def this_platform() -> Platform:
    """The machine we are on. SetUpError where nobody releases or builds a control plane."""
    processors = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    processor = processors.get(platform.machine().lower())
    if sys.platform not in ("linux", "darwin") or processor is None:
        raise errors.SetUpError(
            f"the local cluster runs on Linux and macOS, amd64 or arm64, and this is "
            f"{sys.platform} {platform.machine()}: use a cluster of your own and the Helm chart"
        )
    return Platform(sys.platform, processor)


def parse_version(component: Component, output: str) -> str | None:
    """The version in what ``COMPONENT --version`` printed, as ``v1.2.3``; None if there is none."""
    prefix = "etcd Version: " if component is Component.ETCD else "Kubernetes "
    for line in output.splitlines():
        if line.startswith(prefix):
            return "v" + line.removeprefix(prefix).strip().removeprefix("v")
    return None
