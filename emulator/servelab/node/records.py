"""What a kubelet knows of one container, and how it reports it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelserve.api import timestamps
from modelserve.catalog import images as catalogue
from servelab.node import images, podspec, probing


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


@dataclass(slots=True)
class Record:
    """One container as it stands. Waiting unless running (``started_at_s``) or ended."""

    spec: podspec.Container
    waiting: str = "ContainerCreating"
    waiting_message: str = ""
    started_at_s: float | None = None
    ended: Ended | None = None
    last: Ended | None = None
    ready: bool = False
    started: bool = False
    restarts: int = 0
    crashes: int = 0  # in a row, for the back-off
    container_id: str = ""
    pull_key: str = ""
    create_at_s: float | None = None
    tell_at_s: float | None = None  # when the back-off shows in the status
    restart_at_s: float | None = None
    probers: list[probing.Prober] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self.started_at_s is not None and self.ended is None

    def start(self, pod_uid: str, now_real_s: float) -> None:
        """The container runs from now; its probes begin."""
        seed = f"{pod_uid}/{self.spec.name}/{self.restarts}"
        self.container_id = f"containerd://{hashlib.sha256(seed.encode()).hexdigest()}"
        self.started_at_s, self.ended = now_real_s, None
        self.create_at_s = self.tell_at_s = self.restart_at_s = None
        kinds = {probe.kind for probe in self.spec.probes}
        self.started = podspec.ProbeKind.STARTUP not in kinds
        self.ready = self.started and podspec.ProbeKind.READINESS not in kinds
        self.probers = [probing.Prober(probe, now_real_s) for probe in self.spec.probes]

    def resume(self, started_at_s: float, status: Mapping[str, Any], now_real_s: float) -> None:
        """It was running all the time, and stands as its status says."""
        self.started_at_s = started_at_s
        self.started, self.ready = bool(status.get("started")), bool(status.get("ready"))
        self.probers = [probing.Prober(probe, started_at_s) for probe in self.spec.probes]
        passing = {podspec.ProbeKind.STARTUP: self.started, podspec.ProbeKind.READINESS: self.ready}
        for prober in self.probers:
            prober.passing = passing.get(prober.probe.kind, True)
            # A first period for the engine to come back.
            prober.next_at_real_s = now_real_s + prober.probe.period_s

    def end(self, exit_code: int, now_real_s: float) -> None:
        """The running container ends."""
        assert self.started_at_s is not None
        reason = "Error" if exit_code else "Completed"
        self.ended = Ended(exit_code, reason, self.started_at_s, now_real_s, self.container_id)
        self.ready = self.started = False
        self.probers = []

    def back_off(self) -> None:
        """Show that it waits to be started again; the message was set when the wait began."""
        self.last, self.ended, self.started_at_s = self.ended, None, None
        self.waiting, self.tell_at_s = "CrashLoopBackOff", None

    def again(self) -> None:
        """It is about to be started again."""
        if self.ended is not None:
            self.last, self.ended, self.started_at_s = self.ended, None, None
        self.tell_at_s = self.restart_at_s = None
        self.restarts += 1

    def to_json(self) -> dict[str, Any]:
        """The entry of ``containerStatuses``."""
        ran = bool(self.container_id)
        body: dict[str, Any] = {
            "name": self.spec.name,
            "state": self._state(),
            "lastState": {"terminated": self.last.to_json()} if self.last else {},
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": catalogue.canonical(self.spec.image) if ran else self.spec.image,
            "imageID": images.digest(self.spec.image) if ran else "",
        }
        if ran:
            body |= {"containerID": self.container_id, **particulars(self.spec)}
        return body | {"started": self.started}

    def _state(self) -> dict[str, Any]:
        if self.ended:
            return {"terminated": self.ended.to_json()}
        if self.started_at_s is not None:
            return {"running": {"startedAt": timestamps.format_time(self.started_at_s)}}
        message = {"message": self.waiting_message} if self.waiting_message else {}
        return {"waiting": {"reason": self.waiting, **message}}


def particulars(spec: podspec.Container) -> dict[str, Any]:
    """What an entry of a container that has run tells besides: resources, mounts, user."""
    resources = {k: v for k, v in (spec.raw.get("resources") or {}).items() if v and k != "claims"}
    mounts = [
        {"name": mount["name"], "mountPath": mount["mountPath"]}
        | ({"readOnly": True, "recursiveReadOnly": "Disabled"} if mount.get("readOnly") else {})
        for mount in spec.raw.get("volumeMounts") or ()
    ]
    requests = resources.get("requests")
    return {
        **({"allocatedResources": requests} if requests else {}),
        "resources": resources,
        **({"volumeMounts": mounts} if mounts else {}),
        "user": {"linux": {"uid": 0, "gid": 0, "supplementalGroups": [0]}},
    }
