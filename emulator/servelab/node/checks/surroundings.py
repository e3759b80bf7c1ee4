"""What a recording tells of where it was made: images, registry, node, and what others did.

The pods of a recording do not say which images were there, or how large the node was; the events
do, and the status shows the conditions that others wrote.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api import names, pool
from servelab.node.checks import recording
from servelab.node.rules import admission, conditions

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_PULLED = re.compile(
    r'Successfully pulled image "([^"]+)" in \S+ \((\S+) including waiting\)'
    r".*Image size: (\d+) bytes"
)
_PRESENT = re.compile(r'Container image "([^"]+)" already present on machine')
_PROBED = re.compile(r"\w+ probe failed: (.*)", re.DOTALL)
_NOT_PROBED = re.compile(
    r"\w+ probe errored and resulted in unknown state: (.*OCI runtime exec failed.*)", re.DOTALL
)
_UNMOUNTED = re.compile(r'MountVolume.SetUp failed for volume "([^"]+)" : (.*)', re.DOTALL)
# Volumes of which the API server knows what they lack.
_FILES = frozenset({"configMap", "secret", "projected", "persistentVolumeClaim"})
_ROOT = "image will run as root"
_FULL = re.compile(r"enough resource: (\S+), requested: \d+, used: \d+, capacity: (\d+)")
_GPU = "nvidia.com/gpu"
# As most nodes have.
LEAST_GPUS = 8
_KUBELETS = (*conditions.ORDER, "PodResizePending", "PodResizeInProgress")
# The one disruption that a kubelet tells itself; others write theirs before they delete the pod.
_OWN_DISRUPTION = "TerminationByKubelet"
# Told by the API server itself, as a pod is evicted.
EVICTED = "EvictionByEvictionAPI"
_FAILED = re.compile(r'Failed to pull image "([^"]+)": (.*)', re.DOTALL)


def annotations(scenario: recording.Scenario, until_s: float | None = None) -> dict[str, str]:
    """Behaviour and images of the pod's containers, of those alone that it has by then."""
    known = scenario.container_names_at(until_s)
    seen = (_printed(scenario), _mounted(scenario))
    behavior = {
        name: {k: v for found in seen for k, v in found.get(name, {}).items()}
        | dict(scenario.behavior.get(name, {}))
        for name in known
        if name in scenario.behavior or any(name in found for found in seen)
    }
    return {
        names.BEHAVIOR: json.dumps(behavior),
        names.IMAGES: json.dumps(images(scenario)),
    }


def _printed(scenario: recording.Scenario) -> Mapping[str, Mapping[str, str]]:
    """By container, the words for what its exec probe prints, or why that cannot be made."""
    spec = scenario.pod["spec"]
    probing = {
        container["name"]
        for container in (*(spec.get("initContainers") or ()), *spec["containers"])
        if any((container.get(kind) or {}).get("exec") for kind in recording.PROBES)
    }
    found = {}
    for event in scenario.events:
        name = (event.field_path or "").partition("{")[2].rstrip("}")
        if event.reason != "Unhealthy" or name not in probing:
            continue
        if match := _PROBED.fullmatch(event.message):
            if match[1]:
                found[name] = {"probePrints": match[1]}
        elif match := _NOT_PROBED.fullmatch(event.message):
            found[name] = {"probeError": match[1]}
    return found


def _mounted(scenario: recording.Scenario) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """By container, the word for its volumes that could not be mounted for the node's sake."""
    spec = scenario.pod["spec"]
    own = {
        volume["name"]: why
        for volume in spec.get("volumes") or ()
        if not _FILES.intersection(volume)
        for event in scenario.events
        if event.reason == "FailedMount"
        and (match := _UNMOUNTED.fullmatch(event.message))
        and match[1] == volume["name"]
        for why in [match[2]]
    }
    found = {}
    for container in spec["containers"]:
        mine = {
            mount["name"]: own[mount["name"]]
            for mount in container.get("volumeMounts") or ()
            if mount["name"] in own
        }
        if mine:
            found[container["name"]] = {"mountErrors": mine}
    return found


def images(scenario: recording.Scenario) -> Mapping[str, Mapping[str, Any]]:
    """By image, what the recorded node and registry held of it.

    A pull takes as long as there, with its waiting for others, who are not all in the recording.
    """
    found: dict[str, dict[str, Any]] = {}
    for event in scenario.events:
        if match := _PULLED.search(event.message):
            image, took, size = match.groups()
            found[image] = {"sizeBytes": int(size), "pullSeconds": seconds(took)}
        elif match := _FAILED.search(event.message):
            found[match[1]] = {"missing": True, "error": match[2]}
        elif match := _PRESENT.search(event.message):
            found.setdefault(match[1], {"present": True})
    if any(_ROOT in event.message for event in scenario.events):
        for fact in found.values():
            fact["root"] = True
    return found


def capacity(scenarios: Sequence[recording.Scenario]) -> Mapping[str, str | int]:
    """What the recorded node had, as far as its refusals tell it: fields of a pool."""
    found: dict[str, str | int] = {"gpusPerNode": _gpus(scenarios)}
    for scenario in scenarios:
        for event in scenario.events:
            match = _FULL.search(event.message)
            if match and match[1] == "cpu":
                found["cpu"] = f"{match[2]}m"
            elif match and match[1] == "memory":
                found["memory"] = match[2]
            elif match and match[1] == "ephemeral-storage":
                found["disk"] = match[2]
    return found


def _gpus(scenarios: Sequence[recording.Scenario]) -> int:
    """How many the node has, so that no pod is refused: a kubelet without a plugin counts none."""
    asked = [admission.requests(scenario.pod).get(_GPU, 0) for scenario in scenarios]
    return min(pool.MOST_GPUS, max(LEAST_GPUS, int(sum(asked))))


def foreign_conditions(scenario: recording.Scenario) -> Sequence[tuple[float, Mapping[str, Any]]]:
    """Conditions that others than the kubelet wrote, and when they were first seen so."""
    last: dict[str, Any] = {}
    found: list[tuple[float, Mapping[str, Any]]] = []
    for update in scenario.updates:
        for entry in update.status.get("conditions") or ():
            told = (entry["status"], entry.get("reason"), entry.get("message"))
            own = entry["type"] in _KUBELETS or entry.get("reason") == _OWN_DISRUPTION
            if not own and last.get(entry["type"]) != told:
                last[entry["type"]] = told
                found.append((update.t, entry))
    return found


def is_evicted(scenario: recording.Scenario) -> bool:
    """Whether its deletion was an eviction."""
    every = (c for u in scenario.updates for c in u.status.get("conditions") or ())
    return any(entry.get("reason") == EVICTED for entry in every)


def seconds(text: str) -> float:
    """A duration as Go writes it."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
