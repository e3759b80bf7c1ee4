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


def note(pod: state.State, snapshot: runtime.Snapshot) -> None:
    """Tell that a resize begins, or that it is done."""
    generation = pod.pod.generation
    if due(pod, snapshot) or _whole_is_due(pod):
        if pod.resizing != generation:
            pod.resizing = generation
            pod.resized = True
            pod.emit(None, "ResizeStarted", f"Pod resize started: {_told(pod.pod)}")
    elif pod.resizing:
        pod.emit(None, "ResizeCompleted", f"Pod resize completed: {_told(pod.pod)}")
        pod.resizing = 0


def act(pod: state.State) -> bool:
    """Give those that need no restart what they ask for; returns whether there were any."""
    found, pod.given = _whole_is_due(pod), _whole(pod)
    for spec in due(pod, pod.snapshot):
        instance = pod.cri.instances[spec.name][0]
        if not needs_restart(spec, instance):
            instance.resources, found = spec.resources, True
    return found


def _whole(pod: state.State) -> Mapping[str, Any]:
    return pod.pod.raw["spec"].get("resources") or {}


def _whole_is_due(pod: state.State) -> bool:
    return pod.given is not None and pod.given != _whole(pod)


def _amounts(resources: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Request and limit by resource."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return {name: (requests.get(name), limits.get(name)) for name in {*requests, *limits}}


def _told(pod: podspec.Pod) -> str:
    inits, mains = (
        [
            {
                "name": spec.name,
                "resources": {k: dict(v) for k, v in sorted(spec.resources.items())},
            }
            for spec in pod.containers
            if (spec.init if init else spec.main)
        ]
        for init in (True, False)
    )
    first = {"initContainers": inits} if inits else {}
    document = {**first, "containers": mains, "generation": pod.generation}
    return json.dumps(document, separators=(",", ":"))
