"""A container's next run, and what is told of the last one."""

from typing import Any

HTTP = {"httpGet": {"path": "/health", "port": 8000}}
STARTUP = {**HTTP, "periodSeconds": 2, "failureThreshold": 20}
LIVENESS = {**HTTP, "periodSeconds": 1, "failureThreshold": 3}
IMAGE = {"image": "docker.io/library/busybox:1", "imagePullPolicy": "IfNotPresent"}
SIDE = {"name": "side", **IMAGE, "restartPolicy": "Always"}
CRASHES = {"exitAfterSeconds": 0.5, "exitCode": 3}


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


def test_a_sidecar_that_ends_starts_again_while_later_init_containers_run(play: Any) -> None:
    behaviors = {"side": CRASHES, "b": {"exitAfterSeconds": 30}}
    pod = play(initContainers=[SIDE, {"name": "b", **IMAGE}], behaviors=behaviors).run(5)
    assert pod.container(0, "initContainerStatuses")["restartCount"] == 1


def test_a_sidecar_in_back_off_keeps_no_container_from_starting(play: Any) -> None:
    behaviors = {"side": CRASHES, "main": {"exitAfterSeconds": 7, "exitCode": 1}}
    pod = play(initContainers=[SIDE], behaviors=behaviors).run(9)
    waiting = pod.container(0, "initContainerStatuses")["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert pod.container()["restartCount"] == 1


def test_no_probe_is_made_once_a_pod_has_been_active_for_too_long(play: Any) -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 9}
    behaviors = {"side": {"healthyUntilSeconds": 4, "ignoresTerm": True}}
    side = {**SIDE, "livenessProbe": probe}
    pod = play(initContainers=[side], behaviors=behaviors, activeDeadlineSeconds=3).run(9)
    assert pod.status["phase"] == "Failed"
    assert pod.told("Unhealthy") == []


def test_a_container_behaves_otherwise_in_later_runs(play: Any) -> None:
    words = {"exitAfterSeconds": 1, "exitCode": 1, "later": {"exitAfterSeconds": 3, "later": {}}}
    pod = play(words).run(40)
    assert pod.container()["restartCount"] == 2
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 0
    assert "running" in pod.container()["state"]


def test_of_a_container_that_crashes_for_long_two_runs_are_kept(play: Any) -> None:
    pod = play(CRASHES).run(1000)
    assert pod.container()["restartCount"] > 3
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 3
    assert len(pod.life.state.cri.instances["main"]) == 2
