"""The pod's conditions as a kubelet builds them, in its order.

Source: pkg/kubelet/status/generate.go of Kubernetes 1.37.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelserve.api import names, timestamps
from servelab.node.pods import podspec
from servelab.node.rules import wording

RESIZING = "PodResizeInProgress"
RESTARTING = "AllContainersRestarting"
ORDER = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    RESTARTING,
)
# Why nothing is ready in a pod that is over.
_OVER = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
# What a kubelet tells anew when a probe has found a container ready, or not: these alone.
OF_READINESS = frozenset({"Ready", "ContainersReady"})
# A kubelet tells no generation with it.
UNOBSERVED = frozenset({RESTARTING})


@dataclass(slots=True)
class Conditions:
    """Conditions by type; ``since`` moves only when the status flips."""

    since_s: dict[str, tuple[str, float]] = field(default_factory=dict)

    def holds(self, kind: str) -> bool:
        """Whether it was last told to be so."""
        known = self.since_s.get(kind)
        return known is not None and known[0] == "True"

    def render(
        self, kind: str, status: str, now_real_s: float, generation: int, why: tuple[str, str]
    ) -> dict[str, Any]:
        """One condition; ``why`` is reason and message, empty ones left out."""
        known = self.since_s.get(kind)
        if known is None or known[0] != status:
            known = self.since_s[kind] = (status, now_real_s)
        body: dict[str, Any] = {
            "type": kind,
            **({} if kind in UNOBSERVED else {"observedGeneration": generation}),
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": timestamps.format_time(known[1]),
        }
        # An explicit null takes a reason away that the last write left there.
        return body | {"reason": why[0] or None, "message": why[1] or None}


@dataclass(frozen=True, slots=True)
class PodView:
    """What the pod's conditions depend on; ``told`` are the entries of its container statuses."""

    generation: int
    sandbox: str  # "absent", "ready", "gone"
    phase: str
    containers: Sequence[podspec.Container]
    told: Mapping[str, Mapping[str, Any]]
    gates: tuple[str, ...]
    gate_status: Mapping[str, str]
    starting: tuple[str, str, str] | None  # status, reason, message of the Starting condition
    resizing: int = 0  # the generation that asked for the resize under way
    restarting: bool | None = None  # all containers are; None where none can ask for that


def render(
    view: PodView, memory: Conditions, now_real_s: float, kinds: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """The conditions in a kubelet's order, then our own Starting one; or those ``kinds`` alone."""
    rows = [
        ("PodReadyToStartContainers", *_sandbox(view.sandbox)),
        ("Initialized", *_initialized(view, kept=memory.holds("Initialized"))),
        ("Ready", *ready(view)),
        ("ContainersReady", *_containers_ready(view)),
        ("PodScheduled", "True", "", ""),
    ]
    if view.restarting is not None:
        rows.append((RESTARTING, *_restarting(view)))
    if view.starting:
        rows.append((names.CONDITION_STARTING, *view.starting))
    if view.resizing:
        rows.insert(0, (RESIZING, "True", "", ""))
    return [
        memory.render(kind, status, now_real_s, view.generation, (reason, message))
        for kind, status, reason, message in rows
        if kinds is None or kind in kinds
    ]


def starting(view: PodView, memory: Conditions, now_real_s: float) -> dict[str, Any]:
    """Our own condition alone."""
    status, reason, message = view.starting or ("False", "", "")
    kind = names.CONDITION_STARTING
    return memory.render(kind, status, now_real_s, view.generation, (reason, message))


def _sandbox(state: str) -> tuple[str, str, str]:
    if state == "ready":
        return "True", "", ""
    text = "no pod sandbox exists" if state == "absent" else "pod sandbox is not ready"
    return "False", "PodSandboxNotReady", text


def _restarting(view: PodView) -> tuple[str, str, str]:
    if view.restarting:
        return "True", "RestartAllContainersStarted", "container exited with restart policy rule"
    return "False", _OVER.get(view.phase, ""), ""


def _initialized(view: PodView, *, kept: bool) -> tuple[str, str, str]:
    inits = [spec for spec in view.containers if spec.init]
    waiting = [spec.name for spec in inits if not initialized(spec, view.told[spec.name])]
    if view.phase == "Succeeded":
        return "True", "PodCompleted", ""
    mains = (spec for spec in view.containers if spec.main)
    # Once initialized, a pod stays so, whatever becomes of its sidecars.
    if waiting and not kept and not any(view.told[spec.name]["started"] for spec in mains):
        text = f"containers with incomplete status: {wording.bracketed(waiting)}"
        return "False", "ContainersNotInitialized", text
    return "True", "", ""


def initialized(spec: podspec.Container, entry: Mapping[str, Any]) -> bool:
    """Whether an init container is done (or a sidecar has started)."""
    return bool(entry["started"] if spec.sidecar else entry["ready"])


def _containers_ready(view: PodView) -> tuple[str, str, str]:
    if view.phase in _OVER:
        return "False", _OVER[view.phase], ""
    counted = (spec.name for spec in view.containers if spec.main or spec.sidecar)
    unready = [name for name in counted if not view.told[name]["ready"]]
    if unready:
        text = f"containers with unready status: {wording.bracketed(unready)}"
        return "False", "ContainersNotReady", text
    return "True", "", ""


def ready(view: PodView) -> tuple[str, str, str]:
    """Status, reason and message of the Ready condition."""
    status, reason, message = _containers_ready(view)
    if status == "False":
        return status, reason, message
    missing = [text for gate in view.gates if (text := _gate(gate, view.gate_status.get(gate)))]
    if missing:
        return "False", "ReadinessGatesNotReady", ", ".join(missing)
    return "True", "", ""


def _gate(gate: str, found: str | None) -> str:
    if found is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if found != "True":
        return f'the status of pod readiness gate "{gate}" is not "True", but {found}'
    return ""


def foreign(pod: podspec.Pod) -> dict[str, str]:
    """The status of the conditions that others wrote, by type."""
    found = (pod.raw.get("status") or {}).get("conditions") or []
    ours = (*ORDER, RESIZING, names.CONDITION_STARTING)
    return {entry["type"]: entry["status"] for entry in found if entry["type"] not in ours}
