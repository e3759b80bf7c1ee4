"""What all parts of a pod's life share: the pod, its node, where it stands, the actions so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from modelserve.api import timestamps
from servelab.node import actions, conditions, images, podspec, records, starting
from servelab.node.kubelet import entries
from servelab.timing import transfers

NEVER = float("inf")


class Stage(StrEnum):
    NEW = "new"
    SANDBOX = "sandbox"
    LIVE = "live"
    STOPPING = "stopping"
    OVER = "over"  # Succeeded or Failed, the object still there
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Host:
    """What the pod finds on its node."""

    ip: str
    images: images.NodeImages
    transfers: transfers.Transfers
    scale: float
    create_s: float = 0.0  # creating a container whose image is there, emulated


@dataclass(slots=True)
class State:
    """Where the pod stands; rebuilt from the API after a restart. Times are Unix, real."""

    records: list[records.Record]
    stage: Stage = Stage.NEW
    accepted_real_s: float = 0.0
    deadline_real_s: float | None = None  # of a deletion that was asked for
    sandbox: str = "absent"
    cursor: int = 0  # the next container to start
    reserved: bool = False  # the engine's address is bound
    serve_asked: bool = False
    serving: bool = False
    cold: starting.ColdStart | None = None
    flips: conditions.Conditions = field(default_factory=conditions.Conditions)


@dataclass(slots=True)
class Context:
    """One pod on one node. ``works`` are the image pulls by container."""

    pod: podspec.Pod
    host: Host
    pod_ip: str
    works: Mapping[str, transfers.Work]
    engine: starting.EngineStart | None
    state: State
    out: list[actions.Action] = field(default_factory=list)

    def emit(
        self, record: records.Record, reason: str, message: str, *, kind: str = "Normal"
    ) -> None:
        self.out.append(actions.Emit(kind, reason, message, record.spec.field_path))

    def command(self, verb: actions.Verb, grace_real_s: float = 0.0) -> None:
        self.out.append(actions.Command(verb, grace_real_s))

    def write(self, at_real_s: float) -> None:
        """Ask for the status as it stands to be written."""
        self.out.append(actions.WriteStatus(self.status(at_real_s)))

    @property
    def running(self) -> bool:
        return any(record.running for record in self.state.records)

    @property
    def load_key(self) -> str:
        """The key of the engine's transfers."""
        return f"{self.pod.node}/load/{self.pod.uid}"

    def is_engine(self, record: records.Record) -> bool:
        return self.engine is not None and record.spec.name == self.engine.container

    def engine_record(self) -> records.Record | None:
        return next((r for r in self.state.records if self.is_engine(r)), None)

    @property
    def engine_running(self) -> bool:
        record = self.engine_record()
        return record is not None and record.running

    @property
    def engine_pulls(self) -> bool:
        """The engine's image is on its way, or waits its turn."""
        record = self.engine_record()
        return record is not None and bool(record.pull_key)

    def healthy(self, record: records.Record) -> bool:
        """What a probe would find: the engine's answer; other containers always pass."""
        return self.state.serving if self.is_engine(record) else True

    def expected_end_real_s(self) -> float:
        """When the engine's pull or step ends as things stand; NEVER where none has a known end."""
        cold, record = self.state.cold, self.engine_record()
        if cold is None or record is None or self.state.serve_asked:
            return NEVER
        if record.pull_key:
            return self.host.images.state(record.pull_key).ends_s / self.host.scale
        if cold.step is None or not record.running:
            return NEVER
        return self.host.transfers.ends_at_s(self.load_key) / self.host.scale

    def progress(self, now_real_s: float) -> transfers.Progress | None:
        """How far the running phase is; None if it waits its turn or has no known length."""
        cold, now_s = self.state.cold, now_real_s * self.host.scale
        if cold is None:
            return None
        if cold.step is not None and self.engine_running and not self.state.deadline_real_s:
            return self.host.transfers.progress(self.load_key, now_s)
        keys = [record.pull_key for record in self.state.records if record.pull_key]
        if not keys or self.host.images.state(keys[0]).begun_s > now_s:
            return None
        return self.host.images.progress(keys[0], now_s)

    def status(self, now_real_s: float) -> dict[str, Any]:
        """The pod's status, our keys only, as a strategic merge patch."""
        state = self.state
        over = state.stage in (Stage.STOPPING, Stage.GONE) and not self.running
        told = {record.spec.name: record.to_json() for record in state.records}
        ran = any(r.container_id for r in state.records if not r.spec.init)
        phase = entries.phase(self.pod, told, terminal=over, initialized=ran)
        if over and phase not in ("Succeeded", "Failed"):
            phase = "Failed"
        view = conditions.PodView(
            self.pod.generation,
            state.sandbox,
            phase,
            self.pod.containers,
            told,
            self.pod.readiness_gates,
            conditions.foreign(self.pod),
            state.cold.condition(self.progress(now_real_s)) if state.cold else None,
        )
        rows = conditions.render(view, state.flips, now_real_s)
        body: dict[str, Any] = {
            "observedGeneration": self.pod.generation,
            "phase": phase,
            "$setElementOrder/conditions": [{"type": row["type"]} for row in rows],
            "conditions": rows,
            "hostIP": self.host.ip,
            "hostIPs": [{"ip": self.host.ip}],
            "startTime": timestamps.format_time(state.accepted_real_s),
        }
        if any(record.container_id for record in state.records):
            body |= {"podIP": self.pod_ip, "podIPs": [{"ip": self.pod_ip}]}
        for key, init in (("initContainerStatuses", True), ("containerStatuses", False)):
            listed = [told[r.spec.name] for r in state.records if r.spec.init is init]
            body |= {key: listed} if listed else {}
        return body
