"""What of a pod that the watch tells is news to its kubelet. Pure."""

from collections.abc import Mapping
from typing import Any

from modelserve import ports
from modelserve.api import conditions, names
from servelab.node.pods import podspec

# What others change of a pod that is bound, and a kubelet heeds, besides its status.
_HEEDED = ("generation", "deletionTimestamp", "deletionGracePeriodSeconds")


def is_echo(pod: ports.Object, known: podspec.Pod, version: str) -> bool:
    """Whether it is what we wrote last, as that version, and no news of others is in it."""
    new, old = pod["metadata"], known.raw["metadata"]
    return (
        new.get("resourceVersion") == version
        and not known.readiness_gates
        and all(new.get(key) == old.get(key) for key in _HEEDED)
        and (new.get("annotations") or {}).get(names.FAULTS) == known.annotations.get(names.FAULTS)
    )


def is_overwritten(pod: ports.Object, sent: Mapping[str, Any], version: str) -> bool:
    """Whether somebody else wrote another readiness since ``sent`` was written as that version."""
    seen = pod["metadata"].get("resourceVersion", "")
    if ports.parse_version(seen) < ports.parse_version(version):
        return False
    return _ready({"status": sent}) != _ready(pod)


def _ready(pod: ports.Object) -> str:
    return str(conditions.find(pod, "Ready").get("status", ""))
