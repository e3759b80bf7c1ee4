"""In-place resize: containers, or a pod as a whole, whose spec asks for others than they run with.

After kubelet 1.37's doPodResizeAction and its allocation manager. What the API server lets through
is granted: a node that has no room for it now is not played.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.node.kubelet import runtime, state
from servelab.node.pods import podspec

_RESTART = "RestartContainer"


def due(pod: state.State, snapshot: runtime.Snapshot) -> Sequence[podspec.Container]:
    """Containers that run with other resources than asked for."""
    return [
        spec
        for spec in pod.pod.containers
        if (seen := snapshot.newest(spec.name)) is not None
        and seen.running
        and not spec.ephemeral
        and spec.resources != seen.instance.resources
    ]


def needs_restart(spec: podspec.Container, instance: runtime.Instance) -> bool:
    """Whether its policy has it start again for what changes."""
    asked, has = _amounts(spec.resources), _amounts(instance.resources)
    policies = {
        policy["resourceName"]: policy.get("restartPolicy")
        for policy in spec.raw.get("resizePolicy") or ()
    }
    changed = {name for name in {*asked, *has} if asked.get(name) != has.get(name)}
    return any(policies.get(name) == _RESTART for name in changed)


def begin(pod: state.State, old: podspec.Pod) -> None:
    """The pod asks for other resources than before: told as it is heard, whatever it is at.

    Of one that is over or ending no more follows (HandlePodUpdates, SyncTerminatingPod).
    """
    if not _resized(pod.pod, old):
        return
    _tell_started(pod)
    if not pod.ending and pod.phase not in state.TERMINAL:
        pod.resizing, pod.resized = pod.pod.generation, True


def note(pod: state.State, snapshot: runtime.Snapshot) -> None:
    """A sync sees whether a resize is under way, or done: what does not run needs none."""
    if due(pod, snapshot) or _whole_is_due(pod):
        if not pod.resizing:
            # Asked for while nobody heard of it.
            pod.resizing, pod.resized = pod.pod.generation, True
            _tell_started(pod)
    elif pod.resizing:
        told = _told(pod.pod, snapshot)
        pod.emit(None, "ResizeCompleted", f"Pod resize completed: {told}")
        pod.resizing = 0


def _resized(pod: podspec.Pod, old: podspec.Pod) -> bool:
    """Whether the pod, or containers that there were, ask for other resources now."""
    if pod.generation == old.generation:
        return False
    before = {spec.name: spec.resources for spec in old.containers}
    whole = _whole(pod.raw["spec"]) != _whole(old.raw["spec"])
    return whole or any(
        before.get(spec.name, spec.resources) != spec.resources for spec in pod.containers
    )


def _tell_started(pod: state.State) -> None:
    pod.emit(None, "ResizeStarted", f"Pod resize started: {_told(pod.pod)}")


def act(pod: state.State) -> bool:
    """Give those that need no restart what they ask for; returns whether there were any."""
    found = _whole_is_due(pod)
    if pod.given is None or not any(_is_left(spec, pod.snapshot) for spec in pod.pod.containers):
        pod.given = pod.pod.raw["spec"]
    for spec in due(pod, pod.snapshot):
        instance = pod.cri.instances[spec.name][0]
        if not needs_restart(spec, instance):
            instance.resources, found = spec.resources, True
    return found


def _whole(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return spec.get("resources") or {}


def _whole_is_due(pod: state.State) -> bool:
    return pod.given is not None and _whole(pod.given) != _whole(pod.pod.raw["spec"])


def _amounts(resources: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Request and limit by resource."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return {name: (requests.get(name), limits.get(name)) for name in {*requests, *limits}}


def _is_left(spec: podspec.Container, snapshot: runtime.Snapshot) -> bool:
    """Whether it has ended with other resources than it asks for: nothing is given to it."""
    seen = snapshot.newest(spec.name)
    return seen is not None and not seen.running and seen.instance.resources != spec.resources


def _told(pod: podspec.Pod, done: runtime.Snapshot | None = None) -> str:
    """What containers ask for, or, of a resize that is ``done``, what those that ended had."""
    inits, mains = (
        [
            {"name": spec.name, "resources": _written(spec, done)}
            for spec in pod.containers
            if (spec.init if init else spec.main)
        ]
        for init in (True, False)
    )
    first = {"initContainers": inits} if inits else {}
    document = {**first, "containers": mains, "generation": pod.generation}
    return json.dumps(document, separators=(",", ":"))


def _written(spec: podspec.Container, done: runtime.Snapshot | None) -> dict[str, dict[str, str]]:
    seen = None if done is None else done.newest(spec.name)
    found = spec.resources if seen is None or seen.running else seen.instance.resources
    return {kind: dict(amounts) for kind, amounts in sorted(found.items())}
