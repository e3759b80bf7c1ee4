"""Lifecycle hooks, and what a pod shows of them."""

from typing import Any

import pytest

WAITS = {"listen": False, "termAfterSeconds": 0, "termExitCode": 0}


def hooked(play: Any, words: dict[str, Any], **hooks: Any) -> Any:
    return play(words, container={"lifecycle": hooks})


@pytest.mark.parametrize(
    "hook", [{"sleep": {"seconds": 4}}, {"exec": {"command": ["sh", "-c", "sleep 1.5; sleep 2.5"]}}]
)
def test_a_pod_runs_when_its_post_start_hook_is_over(play: Any, hook: Any) -> None:
    pod = hooked(play, WAITS, postStart=hook).run(4)
    assert pod.status["phase"] == "Pending"
    assert pod.run(5.5).status["phase"] == "Running"


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        ({"exec": {"command": ["/bin/false"]}}, "command '/bin/false' exited with 1"),
        ({"exec": {"command": ["sh", "-c", "exit 5"]}}, "command 'sh -c exit 5' exited with 5"),
        ({"httpGet": {"path": "/go", "port": 80}}, 'Get "http://10.200.0.7:80/go": dial tcp'),
    ],
)
def test_a_post_start_hook_that_fails_ends_the_container(play: Any, hook: Any, says: str) -> None:
    pod = hooked(play, WAITS, postStart=hook).run(2)
    assert pod.told("FailedPostStartHook") == ["PostStartHook failed"]
    waiting = pod.container()["state"]["waiting"]
    assert waiting["reason"] in ("PostStartHookError", "CrashLoopBackOff")
    told = [entry["state"].get("waiting", {}).get("message", "") for entry in pod.seen()]
    assert any(says in message for message in told)


def test_a_hook_over_http_finds_a_server_that_listens(play: Any) -> None:
    hook = {"httpGet": {"path": "/go", "port": 80}}
    pod = hooked(play, {}, postStart=hook, preStop=hook).run(2).delete().run(8)
    assert pod.told("FailedPostStartHook") == pod.told("FailedPreStopHook") == []


@pytest.mark.parametrize(
    "hook", [{"exec": {"command": ["false"]}}, {"httpGet": {"path": "/x", "port": 80}}]
)
def test_a_pre_stop_hook_that_fails_is_told_once_and_holds_nothing_up(play: Any, hook: Any) -> None:
    pod = hooked(play, WAITS, preStop=hook).run(2).delete().run(6)
    assert pod.told("FailedPreStopHook") == ["PreStopHook failed"]
    assert pod.deleted


def test_a_pre_stop_hook_that_sleeps_holds_the_signal_back(play: Any) -> None:
    pod = hooked(play, WAITS, preStop={"exec": {"command": ["sleep", "2"]}}).run(2).delete()
    assert "running" in pod.run(3.5).container()["state"]
    assert pod.run(6).deleted


def test_a_hook_that_is_cut_short_with_its_container_failed(play: Any) -> None:
    hook = {"preStop": {"exec": {"command": ["/bin/sleep", "20"]}}}
    pod = play({"termAfterSeconds": 0.2}, container={"lifecycle": hook}).run(2).delete().run(12)
    assert pod.told("FailedPreStopHook") == ["PreStopHook failed"]


def test_a_sleep_of_the_kubelets_own_is_cut_short_without_a_word(play: Any) -> None:
    hook = {"preStop": {"sleep": {"seconds": 20}}}
    pod = play({"termAfterSeconds": 0.2}, container={"lifecycle": hook}).run(2).delete().run(12)
    assert pod.told("FailedPreStopHook") == []


def test_a_hook_after_the_start_fails_with_its_container(play: Any) -> None:
    hook = {"postStart": {"exec": {"command": ["sleep", "3"]}}}
    pod = play({"exitAfterSeconds": 1, "exitCode": 2}, container={"lifecycle": hook}).run(4)
    assert pod.told("FailedPostStartHook") == ["PostStartHook failed"]
    assert pod.told("Killing") == ["FailedPostStartHook"]
    messages = [each["state"].get("waiting", {}).get("message", "") for each in pod.seen()]
    assert any("command 'sleep 3' exited with 137" in text for text in messages)


def test_a_hook_outside_the_container_outlasts_it(play: Any) -> None:
    hook = {"postStart": {"sleep": {"seconds": 2}}}
    pod = play({"exitAfterSeconds": 1, "exitCode": 2}, container={"lifecycle": hook}).run(4)
    assert pod.told("FailedPostStartHook") == []


def test_a_sleep_before_the_stop_is_slept_out_though_the_container_has_ended(play: Any) -> None:
    hooks = {
        "postStart": {"exec": {"command": ["/bin/false"]}},
        "preStop": {"sleep": {"seconds": 3}},
    }
    words = {"exitAfterSeconds": 1, "exitCode": 3, "ignoresTerm": True}
    pod = play(words, container={"lifecycle": hooks}, terminationGracePeriodSeconds=5)
    [began] = [at for key, at in pod.run(9).events.items() if key[1] == "Pulled"]
    assert began[1] - began[0] > 3
