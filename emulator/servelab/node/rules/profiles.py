"""How much a kubelet of a pool tells: all of it, or one write a pod. Pure."""

from collections.abc import Mapping
from typing import Any

# What containers wait for that are on their way: no news of a pod that is to be written once.
_ON_ITS_WAY = frozenset(("", "ContainerCreating", "PodInitializing"))


def can_wait(status: Mapping[str, Any]) -> bool:
    """Whether a pod's status tells nothing but that it is starting, so that the next one will do.

    What somebody would look for is told at once: a container that runs, has ended or cannot start.
    """
    if status.get("phase") != "Pending" or status.get("reason"):
        return False
    kinds = ("initContainerStatuses", "containerStatuses")
    entries = [entry for kind in kinds for entry in status.get(kind) or ()]
    return all(_on_its_way(entry) for entry in entries)


def is_told(kind: str) -> bool:
    """Whether an event of that type is written although a pod is written once."""
    return kind != "Normal"


def _on_its_way(entry: Mapping[str, Any]) -> bool:
    waiting = (entry.get("state") or {}).get("waiting")
    if waiting is None:
        return False
    return not entry.get("restartCount") and waiting.get("reason", "") in _ON_ITS_WAY
