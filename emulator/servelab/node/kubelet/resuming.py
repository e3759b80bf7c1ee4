"""A plain pod's life from what the API server still knows, after the emulator was gone.

Its containers ran on: what was due meanwhile has happened, and the first sync tells it.
"""

from collections.abc import Mapping
from typing import Any

from modelserve.api import timestamps
from servelab.node import podspec, records
from servelab.node.kubelet import life, runtime, state


def resume(pod: podspec.Pod, around: state.Surroundings) -> life.PlainLife:
    """Take a pod on where its status stands."""
    status = pod.raw.get("status") or {}
    containers = runtime.Runtime(pod.uid, around.host.scale)
    begun = state.State(pod, around, containers)
    begun.accepted_s = timestamps.parse_time(status["startTime"])
    begun.phase = begun.told_phase = status.get("phase", "Pending")
    begun.reason, begun.message = status.get("reason", ""), status.get("message", "")
    begun.may_run = begun.phase not in state.TERMINAL
    begun.ip_known = bool(status.get("podIP"))
    found = {entry["type"]: entry for entry in status.get("conditions") or ()}
    for kind, entry in found.items():
        since = timestamps.parse_time(entry.get("lastTransitionTime") or status["startTime"])
        begun.flips.since_s[kind] = (entry["status"], since)
    ready = found.get("PodReadyToStartContainers", {}).get("status") == "True"
    containers.sandbox = begun.sandbox = "ready" if ready else "absent"
    if not begun.may_run:
        containers.sandbox = begun.sandbox = "gone"
    for key in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(key) or ():
            begun.told[entry["name"]] = dict(entry)
            _restore(begun, entry)
    containers.fresh = []  # Their log was lost with the process.
    begun.cache = begun.snapshot = containers.look(begun.accepted_s)
    return life.PlainLife(pod, around, begun)


def _restore(begun: state.State, entry: Mapping[str, Any]) -> None:
    """The container's newest run, if it has had one."""
    name, now = entry["name"], entry.get("state") or {}
    said = begun.around.behaviors.get(name)
    spec = next((each for each in begun.pod.containers if each.name == name), None)
    last = (entry.get("lastState") or {}).get("terminated")
    if said is None or spec is None:
        return
    fallback = spec.raw.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    number = int(entry.get("restartCount", 0))
    for body, run in ((last, number - 1), (now.get("terminated"), number)):
        if body is not None:
            ended = records.Ended.parse(body)
            at = run if body is not last or "waiting" not in now else number
            made = begun.cri.create(name, max(0, at), ended.started_at_s, said, fallback=fallback)
            made.ends_s, made.exit_code = ended.finished_at_s, ended.exit_code
            made.reason, made.message = ended.reason, ended.message
    if "running" in now:
        since = timestamps.parse_time(now["running"]["startedAt"])
        begun.cri.create(name, number, since, said, fallback=fallback)
