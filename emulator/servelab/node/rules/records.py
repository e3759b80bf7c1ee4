"""How a container ended, and what its entry in the status tells besides its state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api import timestamps
from servelab.node.pods import podspec


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended."""

    exit_code: int
    reason: str
    started_at_s: float
    finished_at_s: float
    container_id: str
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """``state.terminated``."""
        body: dict[str, Any] = {"exitCode": self.exit_code, "reason": self.reason}
        if self.message:
            body["message"] = self.message
        return body | {
            "startedAt": timestamps.format_time(self.started_at_s),
            "finishedAt": timestamps.format_time(self.finished_at_s),
            "containerID": self.container_id,
        }

    @classmethod
    def parse(cls, body: dict[str, Any]) -> "Ended":
        return cls(
            int(body.get("exitCode", 0)),
            body.get("reason", ""),
            timestamps.parse_time(body.get("startedAt") or "1970-01-01T00:00:00Z"),
            timestamps.parse_time(body.get("finishedAt") or "1970-01-01T00:00:00Z"),
            body.get("containerID", ""),
            body.get("message", ""),
        )


def particulars(
    pod: podspec.Pod, spec: podspec.Container, resources: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """What an entry of a container that has run tells besides: ``resources`` and user."""
    requests = spec.resources.get("requests")
    return {
        **({"allocatedResources": requests} if requests else {}),
        "resources": dict(resources),
        "user": {"linux": _user(pod, spec)},
    }


def _user(pod: podspec.Pod, spec: podspec.Container) -> dict[str, Any]:
    """Root, where nobody says otherwise: what user an image has is not known."""
    shared = pod.raw["spec"].get("securityContext") or {}
    asked = {**shared, **(spec.raw.get("securityContext") or {})}
    uid, gid = int(asked.get("runAsUser") or 0), int(asked.get("runAsGroup") or 0)
    group = shared.get("fsGroup")
    others = [*([] if group is None else [group]), *(shared.get("supplementalGroups") or ())]
    groups = sorted({gid, *map(int, others)})
    return {"uid": uid, "gid": gid, "supplementalGroups": groups}


def mounts(spec: podspec.Container) -> dict[str, Any]:
    """What its entry tells of its volumes, from the first on."""
    found = [
        {"name": mount["name"], "mountPath": mount["mountPath"]}
        | ({"readOnly": True, "recursiveReadOnly": "Disabled"} if mount.get("readOnly") else {})
        for mount in spec.raw.get("volumeMounts") or ()
    ]
    return {"volumeMounts": found} if found else {}
