"""The comparison: it sees what differs, and not what a kubelet's own jitter makes."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors
from servelab.node.checks import comparing, facts, recording

FILE = Path(__file__).parent / "recordings" / "kubelet-1.37.2.json"
RESTARTS = FILE.with_name("kubelet-1.37.2-restart-all.json")
PLACE = comparing.Place("default", "real-1")


def scenario(name: str) -> recording.Scenario:
    return next(each for each in comparing.read(FILE) if each.scenario == name)


def changed(name: str, edit: Any) -> list[comparing.Difference]:
    """The recording against itself, edited."""
    real = scenario(name)
    body = copy.deepcopy(real.model_dump(by_alias=True))
    edit(body)
    ours = recording.Scenario.model_validate(body)
    return comparing.compare(real, comparing.Run(PLACE, ours.updates, ours.events, ours.logs))


def statuses(body: Any) -> list[Any]:
    return [update["status"] for update in body["updates"]]


@pytest.mark.parametrize("name", [each.scenario for each in comparing.read(FILE)])
def test_a_recording_equals_itself(name: str) -> None:
    assert changed(name, lambda body: None) == []


def set_exit_code(body: Any) -> None:
    for status in statuses(body):
        for entry in status.get("containerStatuses") or ():
            if "terminated" in entry["state"]:
                entry["state"]["terminated"]["exitCode"] = 9


def drop_reason(body: Any) -> None:
    for status in statuses(body):
        for entry in status.get("conditions") or ():
            entry.pop("reason", None)


def hide_phase(body: Any) -> None:
    statuses(body)[-1]["phase"] = "Running"


def be_late(body: Any) -> None:
    body["updates"][-1]["t"] += 5


def swap(body: Any) -> None:
    updates = body["updates"]
    updates[-2]["status"], updates[-1]["status"] = updates[-1]["status"], updates[-2]["status"]


def lose_event(body: Any) -> None:
    body["events"].pop()


def count_event(body: Any) -> None:
    body["events"][0]["count"] += 1


def say_otherwise(body: Any) -> None:
    body["events"][0]["message"] = "Something else"


def lose_path(body: Any) -> None:
    body["events"][0]["fieldPath"] = None


def change_log(body: Any) -> None:
    body["logs"][0]["body"] = "another\n"


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (set_exit_code, "status: container engine state"),
        (drop_reason, "status: condition"),
        (hide_phase, "status: phase"),
        (be_late, "time: "),
        (swap, "status: "),
        (lose_event, "event: Normal | Started"),
        (count_event, "event: Normal | Pulled"),
        (say_otherwise, "event: Normal | Pulled | Something else"),
        (lose_path, "event: Normal | Pulled"),
        (change_log, "log ?"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_differs_is_found(edit: Any, where: str) -> None:
    found = changed("job-completes", edit)
    assert any(difference.where.startswith(where) for difference in found)


def test_the_order_of_facts_counts() -> None:
    def earlier(body: Any) -> None:
        body["updates"][1]["status"]["phase"] = "Running"

    assert [each.where for each in changed("job-completes", earlier)] == ["order"]


def test_writes_that_a_kubelet_merges_are_no_difference() -> None:
    def merge(body: Any) -> None:
        del body["updates"][2]

    assert changed("job-completes", merge) == []


def test_a_probe_may_fail_once_more_or_less_a_run_but_not_more() -> None:
    def fail(times: int) -> list[comparing.Difference]:
        def edit(body: Any) -> None:
            event = next(e for e in body["events"] if e["reason"] == "Unhealthy")
            event["count"] += times

        return changed("startup-probe-late", edit)

    assert fail(1) == []
    assert len(fail(2)) == 1


def test_back_offs_widen_the_tolerance() -> None:
    found = scenario("crash-loop")
    assert comparing.slack_s(found, 3) == comparing.JITTER_S
    assert comparing.slack_s(found, 45) == pytest.approx(1.5 + 0.25 * (12.2 + 24.1), abs=0.2)


def story(*values: str) -> list[facts.Change]:
    return [facts.Change("container a state", v, 5.0 * n, n) for n, v in enumerate(values)]


def test_one_back_off_more_or_less_is_chance_and_two_are_not() -> None:
    held = '{"waiting": {"reason": "CrashLoopBackOff"}}'
    told = story("run", "end", held, "run", "end", held, "run")
    assert comparing._aligned(told, story("run", "end", "run", "end", held, "run"))
    assert comparing._aligned(story("run", "end"), story("run", "end", held))
    assert comparing._aligned(told, story("run", "end", "run", "end", "run")) is None
    assert comparing._aligned(story("run", "end"), story("run", "end", "wait")) is None


def test_what_kubectl_prints_while_the_status_changes_is_not_compared() -> None:
    def said(at_s: float, status: str) -> recording.Scenario:
        body = scenario("crash-loop").model_dump(by_alias=True)
        body["prints"] = [{"t": at_s, "command": "get pod {pod}", "stdout": status}]
        return recording.Scenario.model_validate(body)

    def differ(at_s: float) -> bool:
        real, ours = said(at_s, "Running"), said(at_s, "Error")
        run = comparing.Run(PLACE, ours.updates, ours.events, ours.logs, ours.prints)
        return bool(comparing.compare(real, run))

    last_s = scenario("crash-loop").updates[-1].t
    assert not differ(last_s - 1)
    assert differ(last_s + 2)


def test_names_of_the_cluster_are_masked() -> None:
    text = "pod=p_ns(6839e6d4-0bc4-4e93-9c82-3b523b874994) at 10.244.0.3 on n-1, not n-12"
    masked = "pod=p_<namespace>(<uid>) at <ip> on <node>, not n-12"
    assert facts.mask(text, "ns", "n-1") == masked


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("{", "no JSON"),
        ("[" * 3000, "no JSON"),
        ("[]", "holds no scenario"),
        ('[{"scenario": "a"}]', "at 0.pod: Field required"),
        ('[{"scenario": "a", "pod": {}, "updates": []}]', "scenario 0 \\('a'\\): the pod lacks"),
        (
            json.dumps(
                [
                    {
                        "scenario": "a",
                        "pod": {"metadata": {"name": "p"}, "spec": {"containers": []}},
                        "updates": [{"t": 0, "type": "ADDED", "status": {"conditions": [3]}}],
                    }
                ]
            ),
            "scenario 0 \\('a'\\): TypeError",
        ),
    ],
    ids=["cut", "deep", "empty", "no-pod", "bad-pod", "bad-status"],
)
def test_what_is_no_recording_is_told_with_its_place(
    tmp_path: Path, document: str, complaint: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(document)
    with pytest.raises(errors.InputError, match=complaint) as caught:
        comparing.read(file)
    assert "bad.json" in str(caught.value)


def _shift_from(body: Any, reason: str, seconds: float) -> None:
    """Everything from the update on that first tells this reason, so much later."""
    shift = 0.0
    for update in body["updates"]:
        if reason in json.dumps(update["status"]):
            shift = seconds
        update["t"] += shift


def test_when_a_back_off_is_told_is_chance() -> None:
    def tell_early(body: Any) -> None:
        told = [reason_of(update) == "CrashLoopBackOff" for update in body["updates"]]
        number = told.index(True)
        body["updates"][number]["t"] = body["updates"][number - 1]["t"] + 1

    assert changed("command-missing", tell_early) == []


def reason_of(update: Any) -> str | None:
    for entry in update["status"].get("containerStatuses") or ():
        found: str | None = entry["state"].get("waiting", {}).get("reason")
        return found
    return None


def test_a_step_that_takes_much_longer_is_found() -> None:
    found = changed("job-completes", lambda body: _shift_from(body, "terminated", 4))
    assert {each.where.partition(":")[0] for each in found} == {"time"}


def test_what_a_scheduler_tells_is_not_compared() -> None:
    def add(body: Any) -> None:
        body["events"].append({"type": "Normal", "reason": "Scheduled", "message": "m"})

    assert changed("job-completes", add) == []


def end_later(body: Any) -> None:
    """The first crash is not seen, and the container is seen once more, after the end."""
    updates = body["updates"]
    updates.append(copy.deepcopy(updates[-2]) | {"t": updates[-1]["t"] + 0.7})
    del updates[4]


def test_what_comes_after_the_end_is_not_judged_even_if_a_moment_is_missing() -> None:
    assert changed("crash-loop", end_later) == []


def test_not_all_is_seen_before_the_last_crash() -> None:
    real = scenario("crash-loop")
    assert comparing.seen_all(real, real.updates, PLACE)
    assert not comparing.seen_all(real, real.updates[:-1], PLACE)


def test_a_story_of_many_short_moments_is_compared_in_no_time() -> None:
    """To try each of them by itself would take for ever."""
    ours = [facts.Change("k", str(n % 2), n / 4, n) for n in range(61)]
    wanted = [str(n % 2) for n in range(51)]
    assert facts.without_blips(ours, [*wanted[:-1], "2"]) is None
    kept = facts.without_blips(ours, wanted)
    assert kept is not None
    assert [change.value for change in kept] == wanted


def test_a_last_back_off_may_be_told_later_with_the_end_before_it() -> None:
    real = next(s for s in comparing.read(RESTARTS) if s.scenario == "all-crashed-before")
    ours = real.updates[:-1]
    assert comparing.compare(real, comparing.Run(PLACE, ours, real.events, real.logs)) == []


def test_an_end_that_no_back_off_tells_has_to_be_told() -> None:
    def forget(body: Any) -> None:
        for status in statuses(body):
            for entry in status.get("containerStatuses") or ():
                entry["lastState"] = {}

    found = changed("crash-loop", forget)
    assert any(difference.where.endswith("lastState") for difference in found)
