"""The same facts in the same order as a real kubelet wrote for the same pod (recordings)."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from modelserve.api import wire
from servelab.node.pods import starting
from servelab.timing import transfers

RECORDED = json.loads(Path(__file__).with_name("kubelet-1.37.json").read_text())["scenarios"]
Fact = tuple[str, str]
# Our own condition, and what the recordings' other registry and image store give.
TIMES = re.compile(r"in \S+ \(\S+ including waiting\)\. Image size: \d+")


def changes(updates: list[dict[str, Any]]) -> dict[tuple[Fact, int], int]:
    """Each change of a fact (and how often it came) with the number of its update."""
    seen: dict[str, str] = {}
    count: dict[Fact, int] = {}
    found: dict[tuple[Fact, int], int] = {}
    for number, update in enumerate(updates):
        for key, value in update.items():
            text = json.dumps(value)
            if seen.get(key) != text:
                seen[key] = text
                count[key, text] = count.get((key, text), 0) + 1
                found[(key, text), count[key, text]] = number
    return found


def facts(status: dict[str, Any]) -> dict[str, Any]:
    """A status as the recordings tell it."""
    told: dict[str, Any] = {
        "phase": status["phase"],
        "podIP": bool(status.get("podIP")),
        "startTime": bool(status.get("startTime")),
    }
    for entry in status["conditions"]:
        if "modelserve.dev" not in entry["type"]:
            why = [entry["status"], entry.get("reason", ""), entry.get("message", "")]
            told[f"condition/{entry['type']}"] = why
    for entry in status["containerStatuses"]:
        ((kind, state),) = entry["state"].items()
        name = entry["name"]
        told[f"container/{name}"] = [kind, state.get("reason", ""), state.get("exitCode", 0)]
        for key in ("ready", "started", "restartCount"):
            told[f"{key}/{name}"] = entry[key]
    return told


def play(recorded: dict[str, Any], player: Any) -> Any:
    """The pod on an emulated node, its container behaving as it did there."""
    pod = copy.deepcopy(recorded["pod"])
    pod["metadata"] |= {"uid": "6839e6d4-0bc4-4e93-9c82-3b523b874994", "namespace": "default"}
    behavior = recorded["behavior"]["engine"]
    listen = transfers.Work(float(behavior.get("listenAfterSeconds", 0)))
    step = starting.Step(wire.Phase.WARM_UP, listen, listen.duration_s)
    life = player(pod, starting.EngineStart("engine", (step,)), drain_s=2.0, pull_s=0.1)
    if "busybox" in pod["spec"]["containers"][0]["image"]:
        life.host.images.add("busybox:1", 1)
    if "exitAfterSeconds" in behavior:
        code = behavior["exitCode"]
        life.on_start = lambda p: p.at(1.0, lambda: p.life.exited("engine", code, p.now))
    if recorded["deleteAfterSeconds"]:
        life.at(recorded["deleteAfterSeconds"], life.delete)
    return life.run(44.3 if "exitAfterSeconds" in behavior else 20.0)


@pytest.fixture(params=RECORDED, ids=[recorded["scenario"] for recorded in RECORDED])
def recorded(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_facts_change_in_a_kubelets_order(recorded: dict[str, Any], player: Any) -> None:
    first = {"phase": "Pending", "podIP": False, "startTime": False}
    ours = changes([first, *map(facts, play(recorded, player).statuses)])
    theirs = changes(recorded["updates"])
    assert set(ours) == set(theirs)
    order = sorted(theirs, key=lambda change: (theirs[change], ours[change]))
    numbers = [ours[change] for change in order]
    assert numbers == sorted(numbers)


def test_events_are_a_kubelets(recorded: dict[str, Any], player: Any) -> None:
    ours = _before_the_end(list(play(recorded, player).events))
    theirs = [
        (kind, reason, re.sub(r"10\.244\.\d+\.\d+", "10.200.0.7", message), path)
        for kind, reason, message, path in recorded["events"]
        # A probe that hits a server while it closes: a race of the real one.
        if "server closed idle connection" not in message
    ]
    assert [_cut(event) for event in ours] == [_cut(event) for event in theirs]


def _before_the_end(events: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Without what a last probe finds of a server that is gone."""
    reasons = [reason for _, reason, _, _ in events]
    since = reasons.index("Killing") if "Killing" in reasons else len(reasons)
    return [e for n, e in enumerate(events) if n <= since or e[1] != "Unhealthy"]


def _cut(event: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    kind, reason, message, path = event
    return kind, reason, TIMES.sub("in …", message), path
