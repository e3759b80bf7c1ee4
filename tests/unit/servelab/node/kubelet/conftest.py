"""Plays a plain pod's life on a virtual clock, and keeps what it asked for."""

import copy
import json
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from modelserve import ports, testing
from modelserve.api import names
from servelab.node.checks import recording, surroundings
from servelab.node.kubelet import behavior, life, resuming, state
from servelab.node.machines import images
from servelab.node.pods import podspec, references
from servelab.node.rules import actions, spam
from servelab.node.rules.context import Host
from servelab.timing import transfers

T0 = 1_800_000_000.4
IMAGE = "docker.io/library/busybox:1"
UID = "6839e6d4-0bc4-4e93-9c82-3b523b874994"


# What Kubernetes puts into every namespace.
EVERYWHERE = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "…"}}


def at_once(asking: Coroutine[Any, Any, Any]) -> Any:
    """What a cluster in memory answers, which waits for nothing."""
    try:
        asking.send(None)
    except StopIteration as answered:
        return answered.value
    raise AssertionError("it waits")


def bound(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pod as the API server shows it."""
    raw = copy.deepcopy(dict(pod))
    raw["metadata"] = {"namespace": "default", "generation": 1, "uid": UID, **raw["metadata"]}
    raw.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
    for container in (*raw["spec"].get("initContainers", ()), *raw["spec"]["containers"]):
        limits = (container.get("resources") or {}).get("limits")
        if limits:
            container["resources"].setdefault("requests", {})
            container["resources"]["requests"] = limits | container["resources"]["requests"]
    return raw


@dataclass
class Player:
    """One pod. ``events`` have the seconds at which each came."""

    raw: dict[str, Any]
    scale: float = 1.0
    rejection: tuple[str, str] | None = None
    now: float = T0
    updates: list[recording.Update] = field(default_factory=list)
    events: dict[tuple[str, str, str, str], list[float]] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    ration: spam.Filter = field(default_factory=spam.Filter)

    def __post_init__(self) -> None:
        self.cluster = testing.MemoryCluster()
        at_once(self.cluster.create(ports.CONFIG_MAPS, "default", EVERYWHERE))
        moves = transfers.Alone()
        store = images.NodeImages(moves, "n", cached_s=0.5)
        store.add(IMAGE, 1)
        self.host = Host("10.0.0.1", store, moves, self.scale)
        self.life = self.begin()
        self._see("ADDED", self.raw["status"])

    def begin(self) -> life.PodLife:
        """A kubelet takes the pod on, or goes on with it."""
        pod = podspec.parse(self.raw)
        around = state.Surroundings(self.host, "10.200.0.7", *self._facts(pod), self.rejection)
        begun = pod.raw["status"].get("startTime")
        made = resuming.resume(pod, around, self.now) if begun else life.PodLife(pod, around)
        made.state.missing = at_once(references.missing(self.cluster, pod))
        return made

    def _facts(self, pod: podspec.Pod) -> tuple[Any, Any, Any]:
        """Pulls, behaviours and images."""
        facts = behavior.parse_images(pod)
        for image, fact in facts.items():
            if fact.present:
                self.host.images.add(image, 1)
        works = {
            spec.name: transfers.Work(fact.pull_s or 0.05, fact.size_bytes or 61_000_000)
            for spec in pod.containers
            for fact in [facts.get(spec.image, behavior.ImageFact())]
        }
        return works, behavior.parse(pod), facts

    def step(self) -> float:
        """Do all that is due by now; returns when something is due next."""
        while True:
            taken, due = self.life.advance(self.now)
            for action in taken:
                self._do(action)
            if not taken:
                return due

    def run(self, until_s: float) -> "Player":
        """Let that many seconds since the beginning pass."""
        end = T0 + until_s
        while True:
            due = self.step()
            if due > end or self.life.finished:
                self.now = max(self.now, end)
                return self
            self.now = max(self.now, due)

    def delete(self, grace_s: float | None = None) -> "Player":
        """Somebody asks for its deletion."""
        over = self.raw["status"].get("phase") in state.TERMINAL
        grace = 0 if over else self.raw["spec"].get("terminationGracePeriodSeconds", 30)
        grace = grace if grace_s is None or over else grace_s
        self.raw["metadata"] |= {
            "deletionTimestamp": "soon",
            "generation": self.raw["metadata"]["generation"] + 1,
            "deletionGracePeriodSeconds": grace,
        }
        self._see("MODIFIED", self.raw["status"])
        self.life.update(podspec.parse(self.raw), self.now)
        self.life.delete()
        if grace == 0 and not over:
            # By force, or as its spec has it: the API server removes it at once.
            self.life.removed()
            self._see("DELETED", self.raw["status"])
        return self

    def patch(self, act: recording.Act, scenario: recording.Scenario) -> None:
        """Somebody adds a container, resizes one, or changes something else."""
        if "status" in act.patch:
            return  # Conditions are written as they were seen.
        for part in act.patch:
            self.raw[part] = merged(self.raw[part], act.patch[part])
        self.raw["metadata"]["generation"] += "spec" in act.patch
        self.raw["metadata"]["annotations"] = surroundings.annotations(scenario, act.t)
        pod = podspec.parse(self.raw)
        self.life.extend(*self._facts(pod))
        self._see("MODIFIED", self.raw["status"])
        self.life.update(pod, self.now)
        if self.life.finished and not self.raw["metadata"].get("finalizers"):
            self._see("DELETED", self.raw["status"])

    def condition_written(self, entry: Mapping[str, Any]) -> None:
        """Somebody else writes a condition."""
        rows = self.raw["status"].get("conditions") or []
        rest = [row for row in rows if row["type"] != entry["type"]]
        status = {**self.raw["status"], "conditions": [*rest, dict(entry)]}
        self.raw = {**self.raw, "status": status}
        self._see("MODIFIED", self.raw["status"])
        self.life.update(podspec.parse(self.raw), self.now)

    @property
    def status(self) -> Mapping[str, Any]:
        return self.updates[-1].status

    @property
    def deleted(self) -> bool:
        return self.updates[-1].type == "DELETED"

    def container(self, number: int = 0, kind: str = "containerStatuses") -> dict[str, Any]:
        found: dict[str, Any] = self.status[kind][number]
        return found

    def condition(self, kind: str) -> Any:
        return next(entry for entry in self.status["conditions"] if entry["type"] == kind)

    def seen(self) -> list[dict[str, Any]]:
        """All of the first container's entries."""
        told = [update.status.get("containerStatuses") for update in self.updates]
        return [entries[0] for entries in told if entries]

    def told(self, reason: str) -> list[str]:
        return [key[2] for key in self.events if key[1] == reason]

    def recorded(self) -> list[recording.Event]:
        """The events as a recording has them."""
        source = {"component": "kubelet"}
        return [
            recording.Event(
                type=kind,
                reason=why,
                message=text,
                count=len(at),
                source=source,
                field_path=path,
                seen=[(when, n) for n, when in enumerate(at, 1)],
            )
            for (kind, why, text, path), at in self.events.items()
        ]

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.WriteStatus(body):
                kept = {k: _plain(v) for k, v in body.items() if not k.startswith("$")}
                ours = {row["type"] for row in kept.get("conditions", ())}
                others = [
                    row
                    for row in self.raw["status"].get("conditions") or ()
                    if row["type"] not in ours
                ]
                if "conditions" in kept:
                    rows = [row for row in kept["conditions"] if "$patch" not in row]
                    kept["conditions"] = [*rows, *others]
                self.raw["status"] = {**self.raw["status"], **copy.deepcopy(kept)}
                self._see("MODIFIED", self.raw["status"])
            case actions.Emit(kind, reason, message, path):
                if not self.ration.lets(UID, kind, self.now):
                    return
                key = (kind, reason, message, path)
                self.events.setdefault(key, []).append(self.now - T0)
            case actions.Log(_, _, line):
                self.logs.append(line)
            case actions.Delete():
                self.raw["metadata"]["deletionGracePeriodSeconds"] = 0
                held = self.raw["metadata"].get("finalizers")
                self._see("MODIFIED" if held else "DELETED", self.raw["status"])
            case _:
                pass

    def _see(self, kind: str, status: Mapping[str, Any]) -> None:
        meta = {k: v for k, v in self.raw["metadata"].items() if k.startswith("deletion")}
        self.updates.append(
            recording.Update(t=self.now - T0, type=kind, metadata=meta, status=dict(status))
        )


def merged(old: Any, patch: Any) -> Any:
    """What the API server makes of a strategic merge patch: lists go by name, null takes away."""
    if isinstance(patch, dict):
        kept = dict(old or {})
        for key, value in patch.items():
            kept[key] = merged(kept.get(key), value)
        return {key: value for key, value in kept.items() if value is not None}
    if not isinstance(patch, list) or not all(isinstance(each, dict) for each in patch):
        return patch
    known = {each["name"]: each for each in old or ()}
    known |= {each["name"]: merged(known.get(each["name"]), each) for each in patch}
    return list(known.values())


def _plain(value: Any) -> Any:
    """What the API server keeps of it: null takes away."""
    if not isinstance(value, dict):
        return value
    return {k: _plain(v) for k, v in value.items() if v is not None}


class Play(Protocol):
    def __call__(
        self, words: Mapping[str, Any] | None = None, scale: float = 1.0, **spec: Any
    ) -> Player: ...


@pytest.fixture
def play() -> Play:
    """A pod of one container "main" that behaves as the words say, or its command or image.

    It serves if none of these is given.
    """

    def make(words: Mapping[str, Any] | None = None, scale: float = 1.0, **spec: Any) -> Player:
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}
        given = spec.pop("container", {})
        container |= given
        if words is None and not given.keys() & {"command", "args", "image"}:
            words = None if "containers" in spec else {}
        meta: dict[str, Any] = {"name": "p", "annotations": {}}
        meta["annotations"][names.IMAGES] = json.dumps(spec.pop("images", {}))
        behaviors = ({} if words is None else {"main": words}) | spec.pop("behaviors", {})
        meta["annotations"][names.BEHAVIOR] = json.dumps(behaviors)
        defaults = {"nodeName": "n", "restartPolicy": "Always", "terminationGracePeriodSeconds": 3}
        return Player(
            bound({"metadata": meta, "spec": {**defaults, "containers": [container], **spec}}),
            scale,
        )

    return make


@pytest.fixture
def replay() -> Any:
    """A recorded pod, on an emulated node."""

    def make(scenario: recording.Scenario) -> Player:
        raw = copy.deepcopy(dict(scenario.pod))
        raw["metadata"]["annotations"] = surroundings.annotations(scenario, 0.0)
        # What the API server sets at creation.
        raw["status"] = dict(scenario.updates[0].status)
        return Player(bound(raw))

    return make
