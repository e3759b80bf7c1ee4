"""``containerStatuses`` from what the runtime told and why the last start failed.

After kubelet 1.37's convertToAPIContainerStatuses (pkg/kubelet/kubelet_pods.go).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from modelserve.api import timestamps
from modelserve.catalog import images as catalogue
from servelab.node.kubelet import runtime
from servelab.node.machines import images
from servelab.node.pods import podspec
from servelab.node.rules import records

Entry = dict[str, Any]
# What a status has of the last words of all containers together.
POD_MESSAGE_BYTES = 12 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why a container could not be started in the last sync: reason and message."""

    reason: str
    message: str


def restarts(pod: podspec.Pod, spec: podspec.Container, seen: runtime.Seen | None) -> bool:
    """Whether a container that does not run is to be started (again)."""
    if pod.raw["metadata"].get("deletionTimestamp"):
        return False
    if seen is None:
        return True
    return not seen.running and restartable(pod, spec, seen.instance.exit_code)


def restartable(pod: podspec.Pod, spec: podspec.Container, exit_code: int) -> bool:
    """Whether the policy has it start again after that exit; an init container until it is done."""
    if spec.sidecar:
        return True
    if any(_applies(rule, exit_code) for rule in spec.raw.get("restartPolicyRules") or ()):
        return True
    policy = spec.raw.get("restartPolicy") or pod.restart_policy
    if policy == "OnFailure" or spec.init:
        return exit_code != 0 and policy != "Never"
    return bool(policy == "Always")


def _applies(rule: Mapping[str, Any], exit_code: int) -> bool:
    """Whether a container's own rule has it start again after that exit."""
    codes = rule.get("exitCodes") or {}
    inside = exit_code in (codes.get("values") or ())
    wanted = inside if codes.get("operator") == "In" else not inside
    return rule.get("action") == "Restart" and wanted


def render(
    pod: podspec.Pod,
    spec: podspec.Container,
    snapshot: runtime.Snapshot,
    failure: Failure | None,
    old: Mapping[str, Any] | None,
) -> Entry:
    """One entry, ``ready`` and ``started`` still false."""
    runs = snapshot.runs.get(spec.name, ())
    waiting = "PodInitializing" if any(each.init for each in pod.containers) else None
    entry: Entry = {
        "name": spec.name,
        "state": {"waiting": {"reason": waiting or "ContainerCreating"}},
        "lastState": dict((old or {}).get("lastState") or {}),
        "ready": False,
        "started": False,
        "restartCount": int((old or {}).get("restartCount", 0)),
        "image": spec.image,
        "imageID": "",
        **records.mounts(spec),
    }
    if runs:
        entry |= _ran(pod, spec, runs)
    newest = runs[0] if runs else None
    if spec.init and newest and not newest.running and newest.instance.exit_code == 0:
        return entry
    if failure is not None and restarts(pod, spec, newest):
        if "terminated" in entry["state"]:
            entry["lastState"] = entry["state"]
        told = {"message": failure.message} if failure.message else {}
        entry["state"] = {"waiting": {"reason": failure.reason, **told}}
    return entry


def _ran(pod: podspec.Pod, spec: podspec.Container, runs: tuple[runtime.Seen, ...]) -> Entry:
    newest = runs[0].instance
    image = newest.image or spec.image
    most = POD_MESSAGE_BYTES // len(pod.containers)
    body: Entry = {
        "state": state(runs[0], most),
        "restartCount": newest.restart,
        "image": catalogue.canonical(image),
        "imageID": images.reference(image),
        "containerID": newest.container_id,
        **records.particulars(pod, spec, newest.resources),
    }
    if len(runs) > 1:
        body["lastState"] = state(runs[1], most)
    return body


def state(seen: runtime.Seen, most_bytes: int) -> Entry:
    """``state`` of one run, its last words cut to so many bytes."""
    if seen.running:
        since = timestamps.format_time(seen.instance.started_s)
        return {"running": {"startedAt": since}}
    ended = seen.instance.ended()
    message = runtime.cut(ended.message, slice(most_bytes))
    return {"terminated": dataclasses.replace(ended, message=message).to_json()}


def phase(pod: podspec.Pod, told: Mapping[str, Entry], *, terminal: bool, initialized: bool) -> str:
    """The pod's phase (kubelet 1.37's getPhase). ``terminal``: nothing will start again."""
    mains = [spec for spec in pod.containers if spec.main]
    inits = [spec for spec in pod.containers if spec.init and not spec.sidecar]
    sidecars = [spec for spec in pod.containers if spec.sidecar]
    init_codes = [(spec, _code(told[spec.name])) for spec in inits]
    if any(code and not restartable(pod, spec, code) for spec, code in init_codes):
        return "Failed"
    if any(code is None for _, code in init_codes):
        return "Pending"
    if not initialized and any(_coming(told[spec.name]) for spec in sidecars):
        return "Pending"
    main_codes = {spec.name: _code(told[spec.name]) for spec in mains}
    running = [spec for spec in mains if "running" in told[spec.name]["state"]]
    if any(main_codes[s.name] is None and s not in running for s in mains):
        return "Pending"
    if running or any("running" in told[spec.name]["state"] for spec in sidecars):
        return "Running"
    return _ended_phase(pod, mains, told, main_codes, terminal=terminal)


def _ended_phase(
    pod: podspec.Pod,
    mains: list[podspec.Container],
    told: Mapping[str, Entry],
    codes: Mapping[str, int | None],
    *,
    terminal: bool,
) -> str:
    coming = any(restartable(pod, spec, codes[spec.name] or 0) for spec in mains)
    if coming and not terminal:
        return "Running"
    # A container that waits after a clean end counts as failed here, as a kubelet has it.
    clean = all("terminated" in told[s.name]["state"] and codes[s.name] == 0 for s in mains)
    return "Succeeded" if clean else "Failed"


def _code(entry: Entry) -> int | None:
    """The exit code it stands at; None while it runs or has never run."""
    ended = entry["state"].get("terminated")
    if ended is None and "waiting" in entry["state"]:
        ended = entry["lastState"].get("terminated")
    return None if ended is None else int(ended["exitCode"])


def _coming(entry: Entry) -> bool:
    """A sidecar that has not started yet."""
    if "running" in entry["state"]:
        return not entry["started"]
    return "waiting" in entry["state"] and not entry["lastState"].get("terminated")
