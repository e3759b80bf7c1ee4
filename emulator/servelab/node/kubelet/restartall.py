"""Rules with action RestartAllContainers: one container ends, and the whole pod starts again.

After kubelet 1.37 (kuberuntime, status): a sync stops all others, one by one, and takes all from
the runtime; the next finds nothing, and starts the pod as at first, in the sandbox it has. Until
then condition AllContainersRestarting holds, which only pods with such a rule have.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.node.kubelet import runtime
from servelab.node.pods import podspec

ALL = "RestartAllContainers"
REASON = "RestartingAllContainers"
_MESSAGE = "The container is removed because RestartAllContainers in place"


def action(spec: podspec.Container, exit_code: int) -> str:
    """What the first of a container's rules that suits that exit asks for; empty if none does."""
    for rule in spec.raw.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        inside = exit_code in (codes.get("values") or ())
        if inside is (codes.get("operator") == "In"):
            return str(rule.get("action"))
    return ""


def possible(pod: podspec.Pod) -> bool:
    """Whether any rule of the pod has that action."""
    rules = (rule for spec in pod.containers for rule in spec.raw.get("restartPolicyRules") or ())
    return any(rule.get("action") == ALL for rule in rules)


def asked(pod: podspec.Pod, snapshot: runtime.Snapshot, *, before: bool) -> bool:
    """Whether all are to start again: it was asked for ``before``, or an end asks for it."""
    return before or any(_asks(spec, snapshot.newest(spec.name)) for spec in _counted(pod))


def done(pod: podspec.Pod, snapshot: runtime.Snapshot) -> bool:
    """Whether all are gone from the runtime."""
    return not snapshot.started(tuple(spec.name for spec in _counted(pod)))


def order(pod: podspec.Pod, snapshot: runtime.Snapshot) -> list[podspec.Container]:
    """In which they are taken: those whose end asks for it last, init containers after others."""
    mains, inits = ([s for s in _counted(pod) if s.init is init] for init in (False, True))
    known = [spec for spec in (*mains, *inits) if snapshot.newest(spec.name) is not None]
    # Stable: within both halves the order stays.
    return sorted(known, key=lambda spec: _asks(spec, snapshot.newest(spec.name)))


def left(entry: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a container that was taken; ``entry`` is that of one that never ran."""
    end = {"exitCode": 137, "reason": REASON, "message": _MESSAGE}
    return {
        # One that had ended keeps what was told of it.
        **(old if "terminated" in old["state"] else entry),
        "state": {"waiting": {"reason": REASON, "message": _MESSAGE}},
        "lastState": {"terminated": end | {"startedAt": None, "finishedAt": None}},
        "restartCount": int(old["restartCount"]) + 1,
    }


def taken(ended: Mapping[str, Any] | None) -> bool:
    """Whether such an end, as told, says that the container was taken."""
    return ended is not None and ended.get("reason") == REASON


def _counted(pod: podspec.Pod) -> Sequence[podspec.Container]:
    return [spec for spec in pod.containers if not spec.ephemeral]


def _asks(spec: podspec.Container, seen: runtime.Seen | None) -> bool:
    if seen is None or seen.running:
        return False
    return action(spec, seen.instance.exit_code) == ALL
