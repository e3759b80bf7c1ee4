"""What the parts of a pod's life share: runtime, what the kubelet knows of it, its status."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelserve.api import names, timestamps
from servelab.node.faults import fault
from servelab.node.kubelet import (
    behavior,
    enginelife,
    engineset,
    entries,
    podresources,
    restartall,
    runtime,
)
from servelab.node.pods import podspec, starting
from servelab.node.rules import actions, conditions, configuration
from servelab.node.rules.context import Host
from servelab.timing import transfers

TERMINAL = ("Succeeded", "Failed")
_LISTS = {
    (True, False): "initContainerStatuses",
    (False, False): "containerStatuses",
    (False, True): "ephemeralContainerStatuses",
}
# A kubelet asks its runtime for all containers once a second.
RELIST_REAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the pod finds: its node, its address, images, and why it is not admitted, if so.

    ``engines`` is how its engines start, by container; ``again`` how one starts that has run here
    before.
    """

    host: Host
    pod_ip: str
    works: Mapping[str, transfers.Work]
    behaviors: Mapping[str, behavior.Behavior]
    images: Mapping[str, behavior.ImageFact] = field(default_factory=dict)
    rejection: tuple[str, str] | None = None
    engines: Mapping[str, starting.EngineStart] = field(default_factory=dict)
    gpu_memory_gib: float = 80.0
    again: Callable[[podspec.Pod, str], starting.EngineStart | None] = lambda pod, container: None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the API server has of a pod's status, as far as a kubelet goes by it."""

    phase: str = ""
    initialized: bool = False


UNSEEN = Seen()


@dataclass(slots=True)
class State:
    """One pod. Times are Unix seconds, real."""

    pod: podspec.Pod
    around: Surroundings
    cri: runtime.Runtime
    engines: dict[str, enginelife.Engine] = field(default_factory=dict)
    cache: runtime.Snapshot = field(default_factory=runtime.Snapshot)  # as last relisted
    snapshot: runtime.Snapshot = field(default_factory=runtime.Snapshot)  # as the sync sees it
    pulls_since_s: float | None = None  # of a pod that goes on: when it may have begun to pull
    relisted_s: float = float("-inf")
    missed_s: float | None = None  # since when something changed that no relist has seen
    failures: dict[str, entries.Failure] = field(default_factory=dict)
    missing: configuration.Missing = configuration.NOTHING  # of what it is made of
    faults: fault.Faults = fault.NONE
    faults_seen_s: float = float("-inf")  # until when they have been acted upon
    slowed: dict[actions.Path, float] = field(default_factory=dict)  # the node's, for its sake
    accepted_s: float = 0.0
    now_s: float = 0.0  # of the last step
    stopping: tuple[float, float] | None = None  # all are: with that grace, since then
    ending: bool = False  # its containers are being stopped for good
    gone: bool = False  # its object is: nobody reads a status any more
    restarting: bool = False  # all start again: told, and to be done
    seen: Seen = UNSEEN  # as the sync under way, or its end, was asked for
    may_run: bool = True  # until its containers are known to have ended for good
    told: dict[str, entries.Entry] = field(default_factory=dict)
    sandbox: str = "absent"  # as told
    phase: str = "Pending"  # as found
    cgroup: bool = True  # there still is one
    told_phase: str = "Pending"  # a terminal one is told once no container may run
    reason: str = ""
    message: str = ""
    ip_known: bool = False
    given: Mapping[str, Any] | None = None  # the spec by which it was last given what it asks for
    resizing: int = 0  # the generation that asked for the resize under way
    resized: bool = False  # ever
    resources: dict[str, Any] = field(default_factory=dict)  # of the pod as a whole, as told
    rows: list[dict[str, Any]] = field(default_factory=list)
    echoed: Mapping[str, Any] | None = None  # the last status that asked for a sync (see ``gates``)
    flips: conditions.Conditions = field(default_factory=conditions.Conditions)
    out: list[actions.Action] = field(default_factory=list)

    @property
    def scale(self) -> float:
        return self.around.host.scale

    @property
    def deadline_s(self) -> float:
        """When it has been active for too long; infinite for most."""
        limit = self.pod.raw["spec"].get("activeDeadlineSeconds")
        if limit is None:
            return runtime.NEVER
        # A kubelet counts from its status, whose times are cut to seconds.
        return math.floor(self.accepted_s) + float(limit)

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
        entry = entries.render(state.pod, spec, snapshot, failure, old, restarting=state.restarting)
        started, ready = probed[spec.name]
        done = spec.init and not spec.sidecar and _done(entry)
        if spec.ephemeral:
            # No probe ever judges one.
            entry["ready"] = False
            del entry["started"]
            state.told[spec.name] = entry
            continue
        entry["started"] = started and "running" in entry["state"]
        runs = entry["started"] and ready and (not spec.init or spec.sidecar)
        entry["ready"] = entry["ready"] or done or runs
        state.told[spec.name] = entry
    state.sandbox = snapshot.sandbox
    state.ip_known = state.ip_known or snapshot.sandbox == "ready"


def _done(entry: entries.Entry) -> bool:
    ended = entry["state"].get("terminated")
    return ended is not None and ended["exitCode"] == 0


def settle(state: State, now_s: float, phase: str, why: tuple[str, str] = ("", "")) -> None:
    """Take the phase as found, and write the status with its conditions."""
    ran = state.phase == "Running"
    if state.phase in TERMINAL and phase not in TERMINAL:
        phase = state.phase
    if phase != state.phase or any(why):
        state.phase, (state.reason, state.message) = phase, why
    sight = podresources.Sight(state.seen.phase == "Running", ran, cgroup=state.cgroup)
    state.resources = podresources.told(state.pod.raw, state.resources, sight, state.given)
    write(state, now_s)


def view(state: State, now_s: float) -> conditions.PodView:
    """What its conditions depend on."""
    pod = state.pod
    return conditions.PodView(
        pod.generation,
        state.sandbox,
        state.phase,
        pod.containers,
        state.told,
        pod.readiness_gates,
        conditions.foreign(pod),
        engineset.starting_condition(state.engines.values(), now_s),
        state.resizing,
        state.restarting if restartall.possible(pod) else None,
    )


def write(state: State, now_s: float, *, anew: Collection[str] | None = None) -> None:
    """Ask for the status as it stands to be written; of its conditions those ``anew``, or all.

    A terminal phase is held back while a container may run; its conditions are not.
    """
    if state.gone:
        return
    pod = state.pod
    for engine in state.engines.values():
        engine.settle(state.out, now_s, ready=state.told[engine.container]["ready"])
    found = [] if anew == () else conditions.render(view(state, now_s), state.flips, now_s, anew)
    fresh = {row["type"]: row for row in found}
    rows = found if anew is None else [fresh.get(row["type"], row) for row in state.rows]
    if state.engines and anew is not None:
        # How far its engines are is always told as it is.
        rows = [row for row in rows if row["type"] != names.CONDITION_STARTING]
        rows.append(conditions.starting(view(state, now_s), state.flips, now_s))
    state.rows = rows
    held = state.phase in TERMINAL and state.may_run
    state.told_phase = state.told_phase if held else state.phase
    ip = state.around.host.ip
    body = _frame(state) | {"hostIP": ip, "hostIPs": _only(ip, pod, "hostIPs")}
    if state.resized and not state.resizing:
        # A patch leaves a condition that it does not name.
        body["conditions"] = [*rows, {"type": conditions.RESIZING, "$patch": "delete"}]
    else:
        body["conditions"] = rows
    body["$setElementOrder/conditions"] = [{"type": row["type"]} for row in body["conditions"]]
    if state.reason and not held:
        body |= {"reason": state.reason, "message": state.message}
    shared = pod.raw["spec"].get("hostNetwork")
    if state.ip_known or shared:
        ip = ip if shared else state.around.pod_ip
        body |= {"podIP": ip, "podIPs": _only(ip, pod, "podIPs")}
    body |= state.resources
    for spec in _listed(pod):
        # One that was added just now is told with the next sync. A copy: entries go on changing.
        if spec.name in state.told:
            entry = dict(state.told[spec.name])
            body.setdefault(_LISTS[spec.init, spec.ephemeral], []).append(entry)
    state.out.append(actions.WriteStatus(body))


def _only(ip: str, pod: podspec.Pod, key: str) -> list[dict[str, str]]:
    """The pod's one address; what an emulator elsewhere has told is replaced, not added to."""
    before = {entry["ip"] for entry in (pod.raw.get("status") or {}).get(key) or ()}
    return [{"ip": ip}] if before <= {ip} else [{"ip": ip}, {"$patch": "replace"}]


def _listed(pod: podspec.Pod) -> list[podspec.Container]:
    """As a kubelet lists them: init containers in order, the others by name."""
    return sorted(pod.containers, key=lambda spec: "" if spec.init else spec.name)


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
