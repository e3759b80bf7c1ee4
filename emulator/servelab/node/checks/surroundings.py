"""What a recording tells of where it was made: images, registry, node, and what others did.

The pods of a recording do not say which images were there, or how large the node was; the events
do, and the status shows the conditions that others wrote.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api import names
from servelab.node import conditions
from servelab.node.checks import recording

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_PULLED = re.compile(r'Successfully pulled image "([^"]+)" in (\S+) .*Image size: (\d+) bytes')
_PRESENT = re.compile(r'Container image "([^"]+)" already present on machine')
_FULL = re.compile(r"enough resource: (\S+), requested: \d+, used: \d+, capacity: (\d+)")
_KUBELETS = (*conditions.ORDER, "DisruptionTarget", "PodResizePending", "PodResizeInProgress")
_FAILED = re.compile(r'Failed to pull image "([^"]+)": (.*)', re.DOTALL)


def annotations(scenario: recording.Scenario) -> dict[str, str]:
    """Behaviour and images of the pod's containers."""
    return {
        names.BEHAVIOR: json.dumps(scenario.behavior),
        names.IMAGES: json.dumps(images(scenario)),
    }


def images(scenario: recording.Scenario) -> Mapping[str, Mapping[str, Any]]:
    """By image, what the recorded node and registry held of it."""
    found: dict[str, dict[str, Any]] = {}
    for event in scenario.events:
        if match := _PULLED.search(event.message):
            image, took, size = match.groups()
            found[image] = {"sizeBytes": int(size), "pullSeconds": seconds(took)}
        elif match := _FAILED.search(event.message):
            found[match[1]] = {"missing": True, "error": match[2]}
        elif match := _PRESENT.search(event.message):
            found.setdefault(match[1], {"present": True})
    return found


def capacity(scenarios: Sequence[recording.Scenario]) -> Mapping[str, str]:
    """CPUs and memory of the recorded node, as far as its refusals tell them: fields of a pool."""
    found: dict[str, str] = {}
    for scenario in scenarios:
        for event in scenario.events:
            match = _FULL.search(event.message)
            if match and match[1] == "cpu":
                found["cpu"] = f"{match[2]}m"
            elif match and match[1] == "memory":
                found["memory"] = match[2]
    return found


def foreign_conditions(scenario: recording.Scenario) -> Sequence[tuple[float, Mapping[str, Any]]]:
    """Conditions that others than the kubelet wrote, and when they were first seen so."""
    last: dict[str, Any] = {}
    found: list[tuple[float, Mapping[str, Any]]] = []
    for update in scenario.updates:
        for entry in update.status.get("conditions") or ():
            told = (entry["status"], entry.get("reason"), entry.get("message"))
            if entry["type"] not in _KUBELETS and last.get(entry["type"]) != told:
                last[entry["type"]] = told
                found.append((update.t, entry))
    return found


def seconds(text: str) -> float:
    """A duration as Go writes it."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
