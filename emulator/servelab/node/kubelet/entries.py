"""``containerStatuses`` from what the runtime told and why the last start failed.

After kubelet 1.37's convertToAPIContainerStatuses (pkg/kubelet/kubelet_pods.go).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from modelserve.api import timestamps
from modelserve.catalog import images as catalogue
from servelab.node.kubelet import restartall, runtime
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
    if restartall.action(spec, exit_code):
        return True
    policy = spec.raw.get("restartPolicy") or pod.restart_policy
    if policy == "OnFailure" or spec.init:
        return exit_code != 0 and policy != "Never"
    return bool(policy == "Always")


def render(
    pod: podspec.Pod,
    spec: podspec.Container,
    snapshot: runtime.Snapshot,
    failure: Failure | None,
    old: Mapping[str, Any] | None,
    *,
    restarting: bool = False,
) -> Entry:
    """One entry, ``ready`` and ``started`` still false; all may be ``restarting``."""
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
    elif restarting and old and "waiting" not in old["state"]:
        entry = restartall.left(entry, old)
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
    # What has ended tells what it would have now.
    resources = newest.resources if runs[0].running else spec.resources
    body: Entry = {
        "state": state(runs[0], most),
        "restartCount": newest.restart,
        "image": catalogue.canonical(image),
        "imageID": images.reference(image),
        "containerID": newest.container_id,
        **records.particulars(pod, spec, resources),
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
    message = runtime.first(ended.message, most_bytes)
    return {"terminated": dataclasses.replace(ended, message=message).to_json()}


def phase(
    pod: podspec.Pod,
    told: Mapping[str, Entry],
    before: Mapping[str, Entry],
    *,
    terminal: bool,
    initialized: bool,
) -> str:
    """The pod's phase (kubelet 1.37's getPhase). ``terminal``: nothing will start again.

    A kubelet finds it before it knows who has started now: that is as told ``before``.
    """
    mains = [spec for spec in pod.containers if spec.main]
    inits = [spec for spec in pod.containers if spec.init and not spec.sidecar]
    sidecars = [spec for spec in pod.containers if spec.sidecar]
    if any(_code(told[spec.name]) and not _comes_back(pod, spec, told) for spec in inits):
        return "Failed"
    if any(_code(told[spec.name]) is None for spec in inits):
        return "Pending"
    if not initialized and any(_coming(s.name, told, before) for s in sidecars):
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
    coming = any(_comes_back(pod, spec, told) for spec in mains)
    if coming and not terminal:
        return "Running"
    # A container that waits after a clean end counts as failed here, as a kubelet has it.
    clean = all("terminated" in told[s.name]["state"] and codes[s.name] == 0 for s in mains)
    return "Succeeded" if clean else "Failed"


def _comes_back(pod: podspec.Pod, spec: podspec.Container, told: Mapping[str, Entry]) -> bool:
    """Whether one that has ended starts again."""
    ended = _end(told[spec.name])
    code = 0 if ended is None else int(ended["exitCode"])
    return restartall.taken(ended) or restartable(pod, spec, code)


def _end(entry: Entry) -> Mapping[str, Any] | None:
    """The end it stands at; None while it runs or has never run."""
    ended: Mapping[str, Any] | None = entry["state"].get("terminated")
    if ended is None and "waiting" in entry["state"]:
        ended = entry["lastState"].get("terminated")
    return ended


def _code(entry: Entry) -> int | None:
    ended = _end(entry)
    return None if ended is None else int(ended["exitCode"])


def _coming(name: str, told: Mapping[str, Entry], before: Mapping[str, Entry]) -> bool:
    """A sidecar that has not started yet."""
    entry = told[name]
    if "running" in entry["state"]:
        return not (before.get(name) or {}).get("started")
    return "waiting" in entry["state"] and not entry["lastState"].get("terminated")
