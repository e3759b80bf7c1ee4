"""A resize is told whatever its containers are at."""

from typing import Any

from servelab.node.checks import recording

ASKED = {"requests": {"cpu": "100m"}}
MORE = {"requests": {"cpu": "300m"}}


def resize(pod: Any) -> Any:
    patch = {"spec": {"containers": [{"name": "main", "resources": MORE}]}}
    act = recording.Act(t=0, subresource="resize", patch=patch)
    scenario = recording.Scenario(scenario="s", pod=pod.raw, updates=[])
    pod.patch(act, scenario)
    return pod


def told(pod: Any) -> list[str]:
    return [key[1] for key in pod.events if key[1].startswith("Resize")]


def test_before_its_containers_run_it_begins_and_is_done_at_once(play: Any) -> None:
    first = {"name": "first", "image": "docker.io/library/busybox:1"}
    words = {"behaviors": {"first": {"exitAfterSeconds": 6}}}
    pod = play({}, container={"resources": ASKED}, initContainers=[first], **words).run(2)
    resize(pod).run(5)
    assert told(pod) == ["ResizeStarted", "ResizeCompleted"]


def test_of_a_container_that_has_ended_what_it_would_have_is_told(play: Any) -> None:
    second = {"name": "second", "image": "docker.io/library/busybox:1", "command": ["sleep", "99"]}
    pod = play(
        {"exitAfterSeconds": 1, "exitCode": 0},
        container={"resources": ASKED},
        containers=[
            {"name": "main", "image": "docker.io/library/busybox:1", "resources": ASKED},
            second,
        ],
        restartPolicy="OnFailure",
    ).run(4)
    resize(pod).run(7)
    assert pod.container()["resources"] == MORE
    assert told(pod) == ["ResizeStarted", "ResizeCompleted"]


def test_of_a_pod_that_is_over_only_its_beginning_is_told(play: Any) -> None:
    words = {"exitAfterSeconds": 1, "exitCode": 0}
    pod = play(words, container={"resources": ASKED}, restartPolicy="Never").run(5)
    written = len(pod.updates)
    resize(pod).run(9)
    assert (told(pod), len(pod.updates) - written) == (["ResizeStarted"], 1)


def at(pod: Any, reason: str) -> list[float]:
    """The seconds at which it was told, to a tenth."""
    return [round(t, 1) for key, times in pod.events.items() if key[1] == reason for t in times]


def test_one_that_comes_while_a_container_is_killed_is_told_as_it_comes(play: Any) -> None:
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    words = {"listen": False, "ignoresTerm": True}
    pod = play(words, container={"resources": ASKED, "livenessProbe": probe}).run(2.5)
    assert pod.told("Killing"), "its sync waits for the container to end"
    resize(pod).run(9)
    assert at(pod, "ResizeStarted") == [2.5]
    assert at(pod, "ResizeCompleted")[0] > at(pod, "Killing")[0] + 3


def test_of_one_that_comes_as_a_pod_fails_the_end_is_told_by_the_sync_that_sees_it(
    play: Any,
) -> None:
    words = {"exitAfterSeconds": 2, "exitCode": 1}
    pod = play(words, container={"resources": ASKED}, restartPolicy="Never").run(2.4)
    assert pod.status["phase"] == "Running"
    resize(pod).run(9)
    assert pod.status["phase"] == "Failed"
    assert told(pod) == ["ResizeStarted", "ResizeCompleted"]


def test_of_one_that_comes_while_the_pod_ends_only_its_beginning_is_told(play: Any) -> None:
    words = {"ignoresTerm": True}
    pod = play(words, container={"resources": ASKED}).run(3).delete(grace_s=4)
    resize(pod.run(4)).run(12)
    assert (told(pod), pod.deleted) == (["ResizeStarted"], True)
