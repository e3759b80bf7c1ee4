"""A pod whose object is gone before it has ended: by force, or with its node."""

from typing import Any


def test_a_shorter_grace_counts_until_the_kill_has_begun(play: Any) -> None:
    pod = play({"ignoresTerm": True}, terminationGracePeriodSeconds=20).run(3.1).delete()
    pod.delete(grace_s=2).run(9)
    assert pod.deleted


def test_a_kill_that_has_begun_keeps_its_grace_even_if_force_is_used(play: Any) -> None:
    pod = play({"ignoresTerm": True}, terminationGracePeriodSeconds=20).run(3).delete().run(6)
    running = pod.delete(grace_s=0).life.state.cri.running
    assert pod.deleted
    pod.run(20)
    assert running(pod.now)
    pod.run(27)
    assert (running(pod.now), pod.life.finished) == ([], True)


def test_by_force_the_object_goes_at_once_and_what_ran_has_two_seconds(play: Any) -> None:
    pod = play({"ignoresTerm": True}, terminationGracePeriodSeconds=60).run(3).delete(grace_s=0)
    assert pod.deleted
    pod.run(4.5)
    assert pod.told("Killing") == ["Stopping container main"]
    assert pod.life.state.cri.running(pod.now)
    assert pod.run(9).life.finished


def test_by_force_hooks_have_one_second(play: Any) -> None:
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["/bin/sleep", "40"]}}}}
    pod = play({}, container=hook, terminationGracePeriodSeconds=60).run(3).delete(grace_s=0)
    pod.run(12)
    assert pod.told("FailedPreStopHook") == ["PreStopHook failed"]
    assert pod.life.finished


def test_of_a_pod_that_is_gone_no_status_is_told(play: Any) -> None:
    pod = play({"ignoresTerm": True}).run(3).delete(grace_s=0)
    told = len(pod.updates)
    pod.run(15)
    assert (len(pod.updates), pod.life.finished) == (told, True)


def test_a_pod_whose_end_was_never_announced_has_its_own_grace(play: Any) -> None:
    pod = play({"ignoresTerm": True}, terminationGracePeriodSeconds=9).run(3)
    pod.life.removed()
    pod.run(11)
    assert pod.life.state.cri.running(pod.now)
    assert pod.run(16).life.finished


def test_a_finished_pod_that_is_gone_is_over(play: Any) -> None:
    pod = play({"exitAfterSeconds": 1}, restartPolicy="Never").run(10)
    assert not pod.life.finished
    pod.life.removed()
    assert pod.run(11).life.finished


def test_of_a_pod_whose_node_is_off_nothing_goes_on(play: Any) -> None:
    pod = play().run(10)
    assert not pod.life.finished
    pod.life.off(pod.now)
    assert pod.life.finished


def test_a_pod_that_is_gone_before_its_node_saw_it_is_over(play: Any) -> None:
    pod = play()
    pod.life.removed()
    assert pod.life.finished
