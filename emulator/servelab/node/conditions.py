"""The pod's status as a kubelet builds it: phase, conditions in its order, addresses.

Sources: pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go of Kubernetes 1.37.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelserve.api import names, timestamps
from servelab.node import records, wording

ORDER = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


@dataclass(slots=True)
class Conditions:
    """Conditions by type; ``since`` moves only when the status flips."""

    since_s: dict[str, tuple[str, float]] = field(default_factory=dict)

    def render(
        self, kind: str, status: str, now_real_s: float, generation: int, why: tuple[str, str]
    ) -> dict[str, Any]:
        """One condition; ``why`` is reason and message, empty ones left out."""
        known = self.since_s.get(kind)
        if known is None or known[0] != status:
            known = self.since_s[kind] = (status, now_real_s)
        body: dict[str, Any] = {
            "type": kind,
            "observedGeneration": generation,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": timestamps.format_time(known[1]),
        }
        # An explicit null takes a reason away that the last write left there.
        return body | {"reason": why[0] or None, "message": why[1] or None}


@dataclass(frozen=True, slots=True)
class PodView:
    """What the pod's conditions depend on."""

    generation: int
    sandbox: str  # "absent", "ready", "gone"
    phase: str
    containers: Sequence[records.Record]
    gates: tuple[str, ...]
    gate_status: Mapping[str, str]
    starting: tuple[str, str, str] | None  # status, reason, message of the Starting condition


def phase(containers: Sequence[records.Record], restart_policy: str, *, over: bool) -> str:
    """The pod's phase by the kubelet's rules; ``over``: torn down, nothing will start again."""
    main = [record for record in containers if not record.spec.init]
    init = [record for record in containers if record.spec.init and not record.spec.sidecar]
    if over:
        ended = [record.ended for record in containers if record.ended]
        clean = bool(ended) and all(e.exit_code == 0 for e in ended)
        return "Succeeded" if clean and all(r.ended for r in main) else "Failed"
    if any(not (r.ended and r.ended.exit_code == 0) for r in init):
        return "Pending"
    if any(not r.running and not r.ended and not r.last for r in main):
        return "Pending"
    if any(r.running or (not r.ended and r.last) for r in main):
        return "Running"
    codes = [r.ended.exit_code for r in main if r.ended]
    if restart_policy == "Always" or (restart_policy == "OnFailure" and any(codes)):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def render(view: PodView, memory: Conditions, now_real_s: float) -> list[dict[str, Any]]:
    """The conditions in a kubelet's order, then our own Starting one."""
    rows = [
        ("PodReadyToStartContainers", *_sandbox(view.sandbox)),
        ("Initialized", *_initialized(view)),
        ("Ready", *_ready(view)),
        ("ContainersReady", *_containers_ready(view)),
        ("PodScheduled", "True", "", ""),
    ]
    if view.starting:
        rows.append((names.CONDITION_STARTING, *view.starting))
    return [
        memory.render(kind, status, now_real_s, view.generation, (reason, message))
        for kind, status, reason, message in rows
    ]


def _sandbox(state: str) -> tuple[str, str, str]:
    if state == "ready":
        return "True", "", ""
    text = "no pod sandbox exists" if state == "absent" else "pod sandbox is not ready"
    return "False", "PodSandboxNotReady", text


def _initialized(view: PodView) -> tuple[str, str, str]:
    waiting = [r.spec.name for r in view.containers if r.spec.init and not initialized(r)]
    if view.phase == "Succeeded":
        return "True", "PodCompleted", ""
    if waiting:
        text = f"containers with incomplete status: {wording.bracketed(waiting)}"
        return "False", "ContainersNotInitialized", text
    return "True", "", ""


def initialized(record: records.Record) -> bool:
    """Whether an init container is done (or a sidecar has started)."""
    if record.spec.sidecar:
        return record.started
    return record.ended is not None and record.ended.exit_code == 0


def _containers_ready(view: PodView) -> tuple[str, str, str]:
    if view.phase in ("Succeeded", "Failed"):
        ran = any(r.ended for r in view.containers if not r.spec.init)
        if ran:
            return "False", "PodCompleted" if view.phase == "Succeeded" else "PodFailed", ""
    counted = (r for r in view.containers if not r.spec.init or r.spec.sidecar)
    unready = [r.spec.name for r in counted if not r.ready]
    if unready:
        text = f"containers with unready status: {wording.bracketed(unready)}"
        return "False", "ContainersNotReady", text
    return "True", "", ""


def _ready(view: PodView) -> tuple[str, str, str]:
    status, reason, message = _containers_ready(view)
    if status == "False":
        return status, reason, message
    for gate in view.gates:
        found = view.gate_status.get(gate)
        if found != "True":
            text = "does not exist" if found is None else f'is not "True": "{found}"'
            why = f'corresponding condition of pod readiness gate "{gate}" {text}.'
            return "False", "ReadinessGatesNotReady", why
    return "True", "", ""
