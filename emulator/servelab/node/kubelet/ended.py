"""The status of a pod that is over: what has no end is given one.

After kubelet 1.37's status manager's TerminatePod.
"""

from collections.abc import Mapping
from typing import Any

from servelab.node.kubelet import state
from servelab.node.pods import podspec

UNKNOWN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}


def finish(pod: state.State, now_s: float) -> None:
    """Give all that lacks one an end, and make the phase final."""
    specs = pod.pod.containers
    inits = [spec for spec in specs if spec.init]
    ran = [number for number, spec in enumerate(inits) if _has_run(pod.told[spec.name])]
    unknown = inits[: max([1, *(number + 1 for number in ran)])]
    if pod.seen.initialized:
        unknown += [spec for spec in specs if spec.main]
    for spec in unknown:
        entry = pod.told[spec.name]
        if "terminated" not in entry["state"]:
            entry["state"] = {"terminated": dict(UNKNOWN)}
    if pod.phase not in state.TERMINAL:
        pod.phase = "Failed"
    state.write(pod, now_s, anew=())


def seen(pod: podspec.Pod) -> state.Seen:
    """What the API server has of it now."""
    status = pod.raw.get("status") or {}
    inits = [spec for spec in pod.containers if spec.init]
    initialized = not inits or _initialized(inits[-1], status)
    return state.Seen(str(status.get("phase", "")), initialized)


def _has_run(entry: Mapping[str, Any]) -> bool:
    return "waiting" not in entry["state"] or bool(entry.get("lastState"))


def _initialized(last: podspec.Container, status: Mapping[str, Any]) -> bool:
    """Whether a status shows that the last init container was done, or any other has run."""
    mains, inits = (status.get(f"{kind}Statuses") or () for kind in ("container", "initContainer"))
    if any(_has_run(entry) for entry in mains):
        return True
    entry = next((each for each in inits if each["name"] == last.name), None)
    if entry is None:
        return False
    if last.sidecar:
        return "running" in entry["state"] and bool(entry.get("started"))
    ends = (entry.get(each, {}).get("terminated") for each in ("state", "lastState"))
    return any(end is not None and end["exitCode"] == 0 for end in ends)
