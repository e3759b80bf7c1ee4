"""A container's next run, and what is told of the last one."""

from typing import Any

HTTP = {"httpGet": {"path": "/health", "port": 8000}}
STARTUP = {**HTTP, "periodSeconds": 2, "failureThreshold": 20}
LIVENESS = {**HTTP, "periodSeconds": 1, "failureThreshold": 3}


def started(pod: Any, restart: int) -> list[bool]:
    return [entry["started"] for entry in pod.seen() if entry["restartCount"] == restart]


def test_a_container_killed_by_its_probe_counts_as_started_until_it_is_probed(play: Any) -> None:
    """The kubelet takes over what it told of the run before, whose end it never told."""
    words = {"listenAfterSeconds": 1, "healthyUntilSeconds": 5}
    pod = play(words, container={"startupProbe": STARTUP, "livenessProbe": LIVENESS}).run(14)
    assert started(pod, 1)[0] is True
    assert False in started(pod, 1)


def test_meanwhile_its_readiness_is_probed(play: Any) -> None:
    words = {"listenAfterSeconds": 3, "healthyUntilSeconds": 7}
    probes = {"startupProbe": STARTUP, "livenessProbe": LIVENESS, "readinessProbe": LIVENESS}
    pod = play(words, container=probes).run(12)
    refused = [text for text in pod.told("Unhealthy") if "connection refused" in text]
    assert any(text.startswith("Readiness") for text in refused)


def test_a_container_that_crashed_counts_as_not_started(play: Any) -> None:
    words = {"listenAfterSeconds": 1, "exitAfterSeconds": 5, "exitCode": 1}
    pod = play(words, container={"startupProbe": STARTUP}).run(8)
    assert started(pod, 1)[0] is False


def test_last_words_are_the_last_4096_bytes_of_the_file(play: Any) -> None:
    words = {"exitAfterSeconds": 1, "terminationMessage": "a" * 10 + "b" * 4096}
    pod = play(words, restartPolicy="Never").run(5)
    assert pod.container()["state"]["terminated"]["message"] == "b" * 4096


def test_all_containers_share_12_kib_of_last_words(play: Any) -> None:
    words = {"exitAfterSeconds": 1, "terminationMessage": "ab" * 2000}
    names = ["main", "b", "c", "d"]
    image = {"image": "docker.io/library/busybox:1", "imagePullPolicy": "IfNotPresent"}
    containers = [{"name": name, **image} for name in names]
    behaviors = dict.fromkeys(names, words)
    pod = play(containers=containers, behaviors=behaviors, restartPolicy="Never").run(5)
    told = [each["state"]["terminated"]["message"] for each in pod.status["containerStatuses"]]
    assert [len(text) for text in told] == [3072] * 4


def test_a_seccomp_profile_that_the_node_lacks_keeps_a_container_from_being_made(play: Any) -> None:
    profile = {"type": "Localhost", "localhostProfile": "nope.json"}
    pod = play(container={"securityContext": {"seccompProfile": profile}}).run(5)
    waiting = pod.container()["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerError"
    assert 'cannot load seccomp profile "/var/lib/kubelet/seccomp/nope.json"' in waiting["message"]
    assert pod.told("Created") == []
