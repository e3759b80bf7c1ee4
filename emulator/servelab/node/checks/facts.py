"""A pod's story as facts: what changed when, with what differs from cluster to cluster masked."""

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelserve.api import names
from servelab.node.checks import recording
from servelab.node.rules import conditions

# No more of them than this are tried to be left out.
MOST_BLIPS = 6
# Held for less than this, a value may be lost: a kubelet merges writes, and sees what happens
# between two relists, a second apart, as one.
BLIP_S = 1.1
_DURATION = r"(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|s)"
_PULLED = re.compile(rf"in {_DURATION} \({_DURATION} including waiting\)")
_USED = re.compile(r"(requested: \d+), used: \d+")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ADDRESS = re.compile(r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
_CONTAINER = re.compile(r"containerd://[0-9a-f]{64}")
_EXEC = re.compile(r"(failed to (?:start|create) exec )\"[0-9a-f]{64}\"")
_KUBELET = re.compile(r"/[\w./-]*/kubelet(?=/(?:seccomp|pods)/)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# What shortened recordings may lack.
OPTIONAL = ("resources", "allocatedResources")
_TOLD = ("ready", "started", "restartCount", *OPTIONAL)
# What a kubelet with cgroup v1 tells where no limit holds.
_UNLIMITED = "9007199254740988Ki"
_TIMES = ("startedAt", "finishedAt", "containerID")


@dataclass(frozen=True, slots=True)
class Change:
    """``key`` took ``value``: seen at ``t_s``, in update ``number``."""

    key: str
    value: str
    t_s: float
    number: int


@functools.lru_cache(maxsize=8192)
def mask(text: str, namespace: str, node: str) -> str:
    """Take out addresses, ids, times, durations of pulls, and the names of namespace and node."""
    for pattern, word in (
        (_PULLED, "in <time> (<time> including waiting)"),
        (_USED, r"\1, used: <n>"),
        (_STAMP, "<time>"),
        (_ADDRESS, "<ip>"),
        (_CONTAINER, "<container>"),
        (_EXEC, r"\1<exec>"),
        (_KUBELET, "<kubelet>"),
        (_UID, "<uid>"),
    ):
        text = pattern.sub(word, text)
    text = text.replace(f"_{namespace}(", "_<namespace>(")
    text = re.sub(rf"(?<![\w./-]){re.escape(namespace)}/", "<namespace>/", text)
    return re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])", "<node>", text)


def told(update: recording.Update, namespace: str, node: str) -> dict[str, str]:
    """Everything one watch event says that must be the same elsewhere."""
    status, meta = update.status, update.metadata
    found: dict[str, Any] = {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": status.get("message"),
        "startTime": bool(status.get("startTime")),
        "podIP": bool(status.get("podIP")),
        "observedGeneration": status.get("observedGeneration"),
        "qosClass": status.get("qosClass"),
        "deletionTimestamp": bool(meta.get("deletionTimestamp")),
        "deletionGracePeriodSeconds": meta.get("deletionGracePeriodSeconds"),
        **{key: _amounts(status.get(key)) for key in OPTIONAL},
        f"condition {conditions.RESIZING}": None,
        f"condition {conditions.RESIZING} observedGeneration": None,
        "object": "deleted" if update.type == "DELETED" else "there",
    }
    for entry in status.get("conditions") or ():
        if entry["type"] == names.CONDITION_STARTING:
            continue
        why = [entry["status"], entry.get("reason"), entry.get("message")]
        found[f"condition {entry['type']}"] = why
        found[f"condition {entry['type']} observedGeneration"] = entry.get("observedGeneration")
    for key in recording.LISTS:
        for entry in status.get(key) or ():
            found |= _container(entry)
    return {
        key: mask(json.dumps(value, sort_keys=True), namespace, node)
        for key, value in found.items()
    }


def _amounts(told: Any) -> Any:
    """Without limits that do not hold."""
    if not isinstance(told, dict):
        return told if told != _UNLIMITED else None
    kept = {name: _amounts(value) for name, value in told.items()}
    return {name: value for name, value in kept.items() if value is not None} or None


def _container(entry: Mapping[str, Any]) -> dict[str, Any]:
    name = f"container {entry['name']}"
    found = {f"{name} {key}": entry.get(key) for key in _TOLD}
    for key in ("state", "lastState"):
        state = entry.get(key) or {}
        found[f"{name} {key}"] = {
            kind: {k: v for k, v in (body or {}).items() if k not in _TIMES}
            for kind, body in state.items()
        }
    return found


def changes(
    updates: Sequence[recording.Update], namespace: str, node: str
) -> dict[str, list[Change]]:
    """By key, each change in order."""
    last: dict[str, str] = {}
    found: dict[str, list[Change]] = {}
    for number, update in enumerate(updates):
        for key, value in told(update, namespace, node).items():
            if last.get(key) == value:
                continue
            last[key] = value
            found.setdefault(key, []).append(Change(key, value, update.t, number))
    return found


def without_blips(ours: Sequence[Change], wanted: Sequence[str]) -> list[Change] | None:
    """``ours`` less short-lived values, the first ones, so that it reads as ``wanted``.

    None if it cannot. What is the same before and after such a value counts once.
    """
    if [change.value for change in ours] == list(wanted):
        return list(ours)
    if not len(wanted) < len(ours) <= len(wanted) + 2 * MOST_BLIPS:
        return None

    def steps(number: int, read: int) -> Iterator[int]:
        """By how much ``ours[number]`` can take that further of which so many have been read."""
        change, following = ours[number], ours[number + 1 : number + 2]
        lapsed = any(after.t_s - change.t_s < BLIP_S for after in following)
        if lapsed or (read and change.value == wanted[read - 1]):
            yield 0
        if read < len(wanted) and change.value == wanted[read]:
            yield 1

    @functools.cache
    def reads(number: int, read: int) -> bool:
        """Whether the rest, from there on, can be read as the rest of what is wanted."""
        if number == len(ours):
            return read == len(wanted)
        return any(reads(number + 1, read + step) for step in steps(number, read))

    kept: list[Change] = []
    for number, change in enumerate(ours):
        step = next((s for s in steps(number, len(kept)) if reads(number + 1, len(kept) + s)), None)
        if step is None:
            return None
        kept += [change] * step
    return kept
