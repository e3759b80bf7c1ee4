"""A rule that has all containers start again."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from modelserve.api import names
from servelab.node.kubelet import behavior, restartall, runtime
from servelab.node.pods import podspec
from servelab.node.rules import actions

IMAGE = {"image": "docker.io/library/busybox:1", "imagePullPolicy": "IfNotPresent"}
CODES = {"operator": "In", "values": [42]}
RULE = {"action": restartall.ALL, "exitCodes": CODES}
OWN = {"restartPolicy": "Never", "restartPolicyRules": [RULE]}
WAITS = {"listen": False, "termAfterSeconds": 0.2}
ONCE = {"exitAfterSeconds": 3, "exitCode": 42, "later": WAITS}
SECOND = {"name": "second", **IMAGE}
CONDITION = "AllContainersRestarting"


def two(play: Any, main: Mapping[str, Any] = ONCE, second: Any = WAITS, **spec: Any) -> Any:
    """The container with the rule, and one beside it."""
    containers = [{"name": "main", **IMAGE, **OWN}, SECOND]
    return play(containers=containers, behaviors={"main": main, "second": second}, **spec)


def told(pod: Any) -> list[tuple[str, str]]:
    """Status and reason of the condition, as often as it changes."""
    rows = [
        (row["status"], row.get("reason") or "")
        for update in pod.updates
        for row in update.status.get("conditions", ())
        if row["type"] == CONDITION
    ]
    return [row for number, row in enumerate(rows) if number == 0 or row != rows[number - 1]]


def test_all_containers_start_again_at_once(play: Any) -> None:
    pod = two(play, restartPolicy="Never").run(9)
    assert [each["restartCount"] for each in pod.status["containerStatuses"]] == [1, 1]
    assert all("running" in each["state"] for each in pod.status["containerStatuses"])
    assert told(pod) == [("False", ""), ("True", "RestartAllContainersStarted"), ("False", "")]


def test_those_that_run_are_killed_without_their_hook(play: Any) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "9"]}}}
    containers = [{"name": "main", **IMAGE, **OWN}, {**SECOND, "lifecycle": hook}]
    pod = play(containers=containers, behaviors={"main": ONCE, "second": WAITS}).run(9)
    assert pod.told("Killing") == ["killing"]
    assert pod.container(1)["restartCount"] == 1


def test_what_was_taken_is_told_instead_of_its_end(play: Any) -> None:
    pod = two(play).run(9)
    assert pod.container()["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 137


def test_another_exit_code_leaves_the_others_alone(play: Any) -> None:
    pod = two(play, {"exitAfterSeconds": 1, "exitCode": 3}, restartPolicy="Never").run(9)
    assert [each["restartCount"] for each in pod.status["containerStatuses"]] == [0, 0]
    assert "terminated" in pod.container()["state"]


def test_init_containers_run_again_and_the_pod_stays_initialized(play: Any) -> None:
    init = {"name": "a", **IMAGE}
    pod = two(play, initContainers=[init]).run(12)
    assert pod.container(0, "initContainerStatuses")["restartCount"] == 1
    first = next(n for n, u in enumerate(pod.updates) if initialized(u) == "True")
    assert {initialized(update) for update in pod.updates[first:]} == {"True"}


def initialized(update: Any) -> str:
    rows = update.status.get("conditions", ())
    return next((row["status"] for row in rows if row["type"] == "Initialized"), "")


def test_no_back_off_holds_a_pod_that_does_it_over_and_over(play: Any) -> None:
    pod = two(play, {"exitAfterSeconds": 1, "exitCode": 42}).run(30)
    assert pod.container()["restartCount"] >= 6
    assert pod.told("BackOff") == []


def test_only_a_pod_with_such_a_rule_has_the_condition(play: Any) -> None:
    assert told(play().run(5)) == []


def test_a_restart_of_the_emulator_goes_on_with_what_was_begun(play: Any) -> None:
    """At any moment of it: no container is counted twice, and none is forgotten."""
    whole = two(play, second=WAITS | {"ignoresTerm": True}).run(20)
    for tenth in range(30, 75):
        pod = two(play, second=WAITS | {"ignoresTerm": True}).run(tenth / 10)
        pod.life = pod.begin()
        pod.run(20)
        for mine, other in zip(
            pod.status["containerStatuses"], whole.status["containerStatuses"], strict=True
        ):
            assert mine["restartCount"] == other["restartCount"], tenth
            assert ("running" in mine["state"]) is True, tenth
        assert told(pod)[-1] == ("False", ""), tenth


@pytest.mark.parametrize(
    ("code", "found"), [(1, "Restart"), (2, "Restart"), (42, restartall.ALL), (7, "")]
)
def test_the_first_rule_that_suits_counts(code: int, found: str) -> None:
    both = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1, 2]}}]
    both.append({"action": restartall.ALL, "exitCodes": {"operator": "In", "values": [2, 42]}})
    assert restartall.action(parsed([{"restartPolicyRules": both}]).containers[0], code) == found


def test_all_codes_but_some_can_ask_for_it() -> None:
    rule = copy.deepcopy(RULE) | {"exitCodes": {"operator": "NotIn", "values": [0]}}
    spec = parsed([{"restartPolicyRules": [rule]}]).containers[0]
    assert [restartall.action(spec, code) for code in (0, 1)] == ["", restartall.ALL]


def test_those_whose_end_asks_for_it_are_taken_last() -> None:
    pod = parsed([OWN, {}], inits=[{}])
    ended = seen("main-0", 42)
    runs = {"main-0": ended, "main-1": seen("main-1", None), "init-0": seen("init-0", 0)}
    order = restartall.order(pod, runtime.Snapshot("ready", {k: (v,) for k, v in runs.items()}))
    assert [spec.name for spec in order] == ["main-1", "init-0", "main-0"]


def parsed(mains: list[Any], inits: list[Any] | None = None) -> podspec.Pod:
    named = {
        "containers": [{"name": f"main-{n}", **IMAGE, **raw} for n, raw in enumerate(mains)],
        "initContainers": [{"name": f"init-{n}", **IMAGE, **r} for n, r in enumerate(inits or ())],
    }
    return podspec.parse({"metadata": {"namespace": "d", "name": "p", "uid": "u"}, "spec": named})


def seen(name: str, code: int | None) -> runtime.Seen:
    made = runtime.Runtime("u", 1.0).create(name, 0, 0.0, behavior.PLAIN, fallback=False)
    if code is not None:
        made.end(1.0, code)
    return runtime.Seen(made, running=code is None)


def test_an_engine_starts_again_with_the_others(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    raw = make_pod()
    raw["spec"]["containers"].append({"name": "main", **IMAGE, **OWN})
    words = {"main": {"exitAfterSeconds": 90, "exitCode": 42, "later": WAITS}}
    raw["metadata"]["annotations"] = {names.BEHAVIOR: json.dumps(words)}
    pod = player(raw, make_engine()).run(180)
    entries = {each["name"]: each for each in pod.status["containerStatuses"]}
    assert [entries[name]["restartCount"] for name in ("engine", "main")] == [1, 1]
    assert pod.verbs.count(actions.Verb.SERVE) == 2
    assert pod.condition("Ready")["status"] == "True"
