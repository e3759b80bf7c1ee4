"""What the parts of a plain pod's life share: runtime, what the kubelet knows of it, its status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelserve.api import timestamps
from servelab.node import actions, conditions, podspec
from servelab.node.context import Host
from servelab.node.kubelet import behavior, entries, runtime
from servelab.timing import transfers

TERMINAL = ("Succeeded", "Failed")
UNKNOWN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}
# A kubelet asks its runtime for all containers once a second.
RELIST_REAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the pod finds: its node, its address, images, and why it is not admitted, if so."""

    host: Host
    pod_ip: str
    works: Mapping[str, transfers.Work]
    behaviors: Mapping[str, behavior.Behavior]
    images: Mapping[str, behavior.ImageFact] = field(default_factory=dict)
    rejection: tuple[str, str] | None = None


@dataclass(slots=True)
class State:
    """One plain pod. Times are Unix seconds, real."""

    pod: podspec.Pod
    around: Surroundings
    cri: runtime.Runtime
    cache: runtime.Snapshot = field(default_factory=runtime.Snapshot)  # as last relisted
    snapshot: runtime.Snapshot = field(default_factory=runtime.Snapshot)  # as the sync sees it
    relisted_s: float = float("-inf")
    missed_s: float | None = None  # since when something changed that no relist has seen
    failures: dict[str, entries.Failure] = field(default_factory=dict)
    config_faults: dict[str, str] = field(default_factory=dict)  # what an environment misses
    volume_fault: str = ""  # the event about a volume that cannot be mounted
    accepted_s: float = 0.0
    now_s: float = 0.0  # of the last step
    ending: bool = False  # its containers are being stopped for good
    may_run: bool = True  # until its containers are known to have ended for good
    told: dict[str, entries.Entry] = field(default_factory=dict)
    sandbox: str = "absent"  # as told
    phase: str = "Pending"  # as found
    told_phase: str = "Pending"  # a terminal one is told once no container may run
    reason: str = ""
    message: str = ""
    ip_known: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    flips: conditions.Conditions = field(default_factory=conditions.Conditions)
    out: list[actions.Action] = field(default_factory=list)

    @property
    def scale(self) -> float:
        return self.around.host.scale

    @property
    def deadline_s(self) -> float:
        """When it has been active for too long; infinite for most."""
        limit = self.pod.raw["spec"].get("activeDeadlineSeconds")
        return runtime.NEVER if limit is None else self.accepted_s + float(limit)

    def emit(
        self,
        spec: podspec.Container | None,
        reason: str,
        message: str,
        *,
        kind: str = "Normal",
    ) -> None:
        """An event about a container, or the pod."""
        self.out.append(actions.Emit(kind, reason, message, spec.field_path if spec else ""))

    def relist(self, now_s: float) -> bool:
        """Ask the runtime; returns whether there was news."""
        found = self.cri.look(now_s)
        news = found != self.cache
        self.cache, self.relisted_s, self.missed_s = found, now_s, None
        return news

    def changed(self, now_s: float) -> None:
        """Something changed in the runtime that the next relist will see."""
        if self.missed_s is None:
            self.missed_s = now_s

    def due_relist_s(self) -> float:
        """When the next relist sees news."""
        ends = [
            seen.instance.ends_s
            for seen in map(self.cache.newest, self.cache.runs)
            if seen is not None and seen.running
        ]
        first = min([*ends, *([] if self.missed_s is None else [self.missed_s])], default=None)
        if first is None or first == runtime.NEVER:
            return runtime.NEVER
        return next_tick_s(first)


def next_tick_s(after_s: float) -> float:
    """The relist after that time."""
    return (after_s // RELIST_REAL_S + 1) * RELIST_REAL_S


def next_round_s(after_s: float) -> float:
    """The kubelet's next look, once a second too, at what pods are due for."""
    return next_tick_s(after_s + RELIST_REAL_S / 2) - RELIST_REAL_S / 2


def last_tick_s(now_s: float) -> float:
    """The relist at or before that time."""
    return now_s // RELIST_REAL_S * RELIST_REAL_S


def report(
    state: State, snapshot: runtime.Snapshot, probed: Mapping[str, tuple[bool, bool]]
) -> None:
    """Renew the containers' entries; ``probed`` says by container whether started and ready."""
    for spec in state.pod.containers:
        failure = state.failures.get(spec.name)
        old = state.told.get(spec.name)
        entry = entries.render(state.pod, spec, snapshot, failure, old)
        started, ready = probed[spec.name]
        done = spec.init and not spec.sidecar and _done(entry)
        entry["started"] = started and "running" in entry["state"]
        runs = entry["started"] and ready and (not spec.init or spec.sidecar)
        entry["ready"] = done or runs
        state.told[spec.name] = entry
    state.sandbox = snapshot.sandbox
    state.ip_known = state.ip_known or snapshot.sandbox == "ready"


def _done(entry: entries.Entry) -> bool:
    ended = entry["state"].get("terminated")
    return ended is not None and ended["exitCode"] == 0


def settle(state: State, now_s: float, phase: str, why: tuple[str, str] = ("", "")) -> None:
    """Take the phase as found, and write the status with its conditions."""
    if state.phase in TERMINAL and phase not in TERMINAL:
        phase = state.phase
    if phase != state.phase or any(why):
        state.phase, (state.reason, state.message) = phase, why
    write(state, now_s)


def terminate(state: State, now_s: float) -> None:
    """The end of a pod that is over: what has no end is given one, and the phase is final.

    After kubelet 1.37's status manager's TerminatePod.
    """
    specs = state.pod.containers
    inits = [spec for spec in specs if spec.init]
    ran = [number for number, spec in enumerate(inits) if _has_run(state.told[spec.name])]
    unknown = inits[: max([1, *(number + 1 for number in ran)])]
    if not inits or _initialized(state):
        unknown += [spec for spec in specs if not spec.init]
    for spec in unknown:
        entry = state.told[spec.name]
        if "terminated" not in entry["state"]:
            entry["state"] = {"terminated": dict(UNKNOWN)}
    if state.phase not in TERMINAL:
        state.phase = "Failed"
    write(state, now_s, anew=False)


def _has_run(entry: entries.Entry) -> bool:
    return "waiting" not in entry["state"] or bool(entry["lastState"])


def _initialized(state: State) -> bool:
    mains = [spec for spec in state.pod.containers if not spec.init]
    if any(_has_run(state.told[spec.name]) for spec in mains):
        return True
    last = [spec for spec in state.pod.containers if spec.init][-1]
    return conditions.initialized(last, state.told[last.name])


def _view(state: State) -> conditions.PodView:
    pod = state.pod
    return conditions.PodView(
        pod.generation,
        state.sandbox,
        state.phase,
        pod.containers,
        state.told,
        pod.readiness_gates,
        conditions.foreign(pod),
        None,
    )


def write(state: State, now_s: float, *, anew: bool = True) -> None:
    """Ask for the status as it stands to be written; its conditions ``anew``, or as they were.

    A terminal phase is held back while a container may run; its conditions are not.
    """
    pod = state.pod
    if anew:
        state.rows = conditions.render(_view(state), state.flips, now_s)
    rows = state.rows
    held = state.phase in TERMINAL and state.may_run
    state.told_phase = state.told_phase if held else state.phase
    ip = state.around.host.ip
    body = _frame(state) | {"hostIP": ip, "hostIPs": [{"ip": ip}]}
    body["$setElementOrder/conditions"] = [{"type": row["type"]} for row in rows]
    body["conditions"] = rows
    if state.reason and not held:
        body |= {"reason": state.reason, "message": state.message}
    shared = pod.raw["spec"].get("hostNetwork")
    if state.ip_known or shared:
        ip = ip if shared else state.around.pod_ip
        body |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    for key, init in (("initContainerStatuses", True), ("containerStatuses", False)):
        # A copy: the entries go on changing.
        listed = [dict(state.told[s.name]) for s in pod.containers if s.init is init]
        body |= {key: listed} if listed else {}
    state.out.append(actions.WriteStatus(body))


def write_rejection(state: State) -> None:
    """The status of a pod that was not admitted: no conditions, no containers."""
    body = _frame(state) | {"reason": state.reason, "message": state.message}
    state.out.append(actions.WriteStatus(body))


def _frame(state: State) -> dict[str, Any]:
    return {
        "observedGeneration": state.pod.generation,
        "phase": state.told_phase,
        "startTime": timestamps.format_time(state.accepted_s),
    }
