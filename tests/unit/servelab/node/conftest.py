"""Plays a pod's life on a virtual clock, with an API server that is a dictionary."""

import copy
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from modelserve.api import wire
from servelab.node.kubelet import behavior, life, resuming, state
from servelab.node.machines import images
from servelab.node.pods import planning, podspec, starting
from servelab.node.rules import actions
from servelab.node.rules.context import Host
from servelab.timing import transfers

T0 = 1_800_000_000.0
UID = "6839e6d4-0bc4-4e93-9c82-3b523b874994"


def merge_status(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Strategic merge of a pod status, as far as a kubelet uses it."""
    merged = old | {k: v for k, v in patch.items() if not k.startswith("$")}
    known = {entry["type"]: entry for entry in old.get("conditions") or ()}
    for entry in patch["conditions"]:
        both = known.get(entry["type"], {}) | entry
        known[entry["type"]] = {k: v for k, v in both.items() if v is not None}
    order = [entry["type"] for entry in patch["$setElementOrder/conditions"]]
    merged["conditions"] = [known[kind] for kind in order]
    return merged


@dataclass
class Player:
    """One pod; ``engine`` None for a container that is none."""

    pod: dict[str, Any]
    engine: starting.EngineStart | None = None
    scale: float = 1.0
    pull_s: float = 10.0
    size_bytes: int = 1000
    drain_s: float = 0.0
    now: float = T0
    statuses: list[dict[str, Any]] = field(default_factory=list)
    events: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    logs: list[tuple[float, str]] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    deleted: bool = False
    on_start: Callable[["Player"], None] | None = None
    moves: transfers.Transfers = field(default_factory=transfers.Alone)
    plan: planning.Plan | None = None
    slow_reserve: bool = False

    def __post_init__(self) -> None:
        store = images.NodeImages(self.moves, self.pod["spec"]["nodeName"], cached_s=0.5)
        self.host = Host("10.0.0.9", store, self.moves, self.scale)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self.begin()

    def begin(self) -> None:
        """A kubelet takes the pod on, or goes on with it."""
        parsed = podspec.parse(self.pod)
        work = transfers.Work(self.pull_s, self.size_bytes)
        works = self.plan.works if self.plan else {c.name: work for c in parsed.containers}
        around = state.Surroundings(
            self.host,
            "10.200.0.7",
            works,
            behavior.parse(parsed),
            engines={} if self.engine is None else {self.engine.container: self.engine},
        )
        if resuming.begun(parsed):
            self.life = resuming.resume(parsed, around, self.now)
        else:
            self.life = life.PodLife(parsed, around)

    def restart(self, forget_images: bool = False) -> None:
        """The emulator's process ends and starts again."""
        self._queue.clear()
        if isinstance(self.moves, transfers.Alone):
            self.moves = transfers.Alone()
        store = images.NodeImages(self.moves, self.pod["spec"]["nodeName"], cached_s=0.5)
        store.restore([] if forget_images else self.host.images.listing())
        self.host = Host("10.0.0.9", store, self.moves, self.scale)
        self.begin()
        if self.pod["metadata"].get("deletionTimestamp"):
            self.life.delete()

    def at(self, after_s: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + after_s, next(self._number), what))

    def delete(self, grace_s: float = 30.0) -> None:
        self.pod["metadata"] |= {"deletionTimestamp": "soon", "generation": 2}
        self.life.update(podspec.parse(self.pod), self.now)
        self.life.delete()

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
            due = min(self.step(), self._queue[0][0] if self._queue else end)
            if self._queue and self._queue[0][0] <= self.now:
                heapq.heappop(self._queue)[2]()
            elif due > end or (due >= end and self.now >= end) or self.life.finished:
                self.now = max(self.now, end)
                return self
            else:
                self.now = max(self.now, due)

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.pod["status"]
        return status

    def condition(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = next(c for c in self.status["conditions"] if c["type"] == kind)
        return found

    def container(self, number: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.status["containerStatuses"][number]
        return found

    def messages(self, reason: str) -> list[str]:
        return [message for _, found, message, _ in self.events if found == reason]

    def stamps(self) -> wire.PhaseStamps:
        import json

        text = self.pod["metadata"]["annotations"]["modelserve.dev/phases"]
        return wire.PhaseStamps.parse(json.loads(text))

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.WriteStatus(status):
                body = copy.deepcopy(dict(status))
                self.pod["status"] = merge_status(self.pod.get("status") or {}, body)
                self.statuses.append(copy.deepcopy(self.pod["status"]))
                self._notice(body)
            case actions.Annotate(annotations):
                self.pod["metadata"].setdefault("annotations", {}).update(annotations)
            case actions.Emit(kind, reason, message, field_path):
                key = (kind, reason, message, field_path)
                self.events[key] = self.events.get(key, 0) + 1
            case actions.Log(_, at, line):
                self.logs.append((at - T0, line))
            case actions.Command(verb):
                self.verbs.append(verb)
                self._obey(verb)
            case actions.Delete():
                self.deleted = True
            case _:
                pass

    def _obey(self, verb: actions.Verb) -> None:
        if verb is actions.Verb.RESERVE and self.slow_reserve:
            return
        if verb is actions.Verb.RESERVE:
            self.life.reserved("engine", "127.0.0.1:4711")
            if self.on_start is not None:
                self.on_start(self)
        elif verb is actions.Verb.SERVE:
            self.life.serving("engine", self.now)
        elif verb is actions.Verb.DRAIN:
            self.at(self.drain_s, lambda: self.life.drained("engine", self.now))

    def _notice(self, status: dict[str, Any]) -> None:
        for entry in status.get("containerStatuses", ()):
            assert entry["started"] or not entry["ready"], "ready is never true without started"


class MakePod(Protocol):
    def __call__(self, **container: Any) -> dict[str, Any]: ...


class MakeEngine(Protocol):
    def __call__(self, load_s: float = 20.0, warm_up_s: float = 40.0) -> starting.EngineStart: ...


@pytest.fixture
def make_pod() -> MakePod:
    """A bound pod with one container, as the API server shows it."""

    def make(**container: Any) -> dict[str, Any]:
        spec = {"name": "engine", "image": "vllm/vllm-openai:v1", **container}
        meta = {"namespace": "default", "name": "p", "uid": UID, "generation": 1}
        spec.setdefault("imagePullPolicy", "IfNotPresent")
        return {
            "metadata": meta,
            "spec": {"nodeName": "n-0", "restartPolicy": "Always", "containers": [spec]},
            "status": {"phase": "Pending"},
        }

    return make


@pytest.fixture
def make_engine() -> MakeEngine:
    """An engine that loads 1 GB and warms up, without jitter, and says a line half way."""

    def make(load_s: float = 20.0, warm_up_s: float = 40.0) -> starting.EngineStart:
        half = (starting.Line(0.5, "half way"),)
        load = transfers.Work(load_s, 1e9)
        steps = (
            starting.Step(wire.Phase.WEIGHT_LOAD, load, load_s, half),
            starting.Step(wire.Phase.WARM_UP, transfers.Work(warm_up_s), warm_up_s, half),
        )
        return starting.EngineStart("engine", steps, pull_planned_s=10.0)

    return make


@pytest.fixture
def player() -> type[Player]:
    return Player
