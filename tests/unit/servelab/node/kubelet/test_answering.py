"""Exec probes whose command says what it comes to."""

import itertools
from typing import Any

import pytest

SERVER = {"listenAfterSeconds": 0}


def probe(*command: str, **settings: Any) -> dict[str, Any]:
    return {"exec": {"command": list(command)}, "periodSeconds": 1, **settings}


def test_a_command_that_fails_makes_no_container_ready(play: Any) -> None:
    pod = play(SERVER, container={"readinessProbe": probe("/bin/false")}).run(6)
    assert (pod.container()["ready"], set(pod.told("Unhealthy"))) == (
        False,
        {"Readiness probe failed: "},
    )


def test_a_command_that_succeeds_says_nothing_of_a_server_that_is_ill(play: Any) -> None:
    words = {"healthyUntilSeconds": 1}
    pod = play(words, container={"livenessProbe": probe("/bin/true", failureThreshold=1)}).run(8)
    assert (pod.container()["restartCount"], pod.told("Unhealthy")) == (0, [])


def test_what_a_failing_command_prints_is_told(play: Any) -> None:
    said = probe("/bin/sh", "-c", "echo not yet; exit 1")
    pod = play(SERVER, container={"readinessProbe": said}).run(4)
    assert pod.told("Unhealthy") == ["Readiness probe failed: not yet\n"]


@pytest.mark.parametrize(("timeout_s", "fails"), [(1, True), (3, False)])
def test_a_command_that_takes_longer_than_it_may_fails(
    play: Any, timeout_s: int, fails: bool
) -> None:
    slow = probe("/bin/sleep", "2", timeoutSeconds=timeout_s, failureThreshold=2)
    pod = play(SERVER, container={"livenessProbe": slow}).run(8)
    assert (pod.container()["restartCount"] > 0) is fails
    message = 'Liveness probe failed: command timed out: "/bin/sleep 2" timed out after 1s'
    assert (message in pod.told("Unhealthy")) is fails


def test_a_slow_command_is_asked_again_when_it_has_answered(play: Any) -> None:
    slow = probe("/bin/sleep", "9", timeoutSeconds=3, failureThreshold=100)
    pod = play(SERVER, container={"readinessProbe": slow}).run(20)
    [at] = [times for key, times in pod.events.items() if key[1] == "Unhealthy"]
    apart = {round(after - before) for before, after in itertools.pairwise(at)}
    assert apart == {3}


def test_an_answer_that_is_under_way_as_the_pod_ends_is_told(play: Any) -> None:
    slow = probe("/bin/sleep", "9", timeoutSeconds=2, failureThreshold=100)
    pod = play({"ignoresTerm": True}, container={"livenessProbe": slow}).run(1).delete().run(8)
    assert len(pod.told("Unhealthy")) == 1


def test_an_answer_that_the_run_before_owes_is_none_of_the_next(play: Any) -> None:
    slow = probe("/bin/sleep", "3", timeoutSeconds=4, failureThreshold=1)
    pod = play({"exitAfterSeconds": 2}, container={"readinessProbe": slow})
    assert pod.run(4).container()["restartCount"] == 1
    assert not pod.container()["ready"]  # not before three seconds of its own
