"""A plain pod's life: what the recordings do not show, by the rules of the kubelet's code."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servelab.node.rules import configuration

PROBE = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}
INIT = {"name": "init", "image": "docker.io/library/busybox:1", "imagePullPolicy": "IfNotPresent"}
SIDECAR = INIT | {"name": "side", "restartPolicy": "Always"}


def test_a_container_that_says_nothing_is_ready_and_stays(play: Any) -> None:
    pod = play().run(600)
    assert pod.condition("Ready")["status"] == "True"
    assert pod.container()["restartCount"] == 0


def test_on_failure_a_clean_end_is_the_end(play: Any) -> None:
    pod = play({"exitAfterSeconds": 1}, restartPolicy="OnFailure").run(10)
    assert (pod.status["phase"], pod.container()["restartCount"]) == ("Succeeded", 0)


def test_on_failure_a_bad_end_starts_again(play: Any) -> None:
    pod = play({"exitAfterSeconds": 1, "exitCode": 2}, restartPolicy="OnFailure").run(10)
    assert (pod.status["phase"], pod.container()["restartCount"]) == ("Running", 1)


def test_an_init_container_that_fails_for_good_fails_the_pod(play: Any) -> None:
    words = {"init": {"exitAfterSeconds": 1, "exitCode": 3}}
    pod = play(initContainers=[INIT], behaviors=words, restartPolicy="Never").run(10)
    assert pod.status["phase"] == "Failed"
    assert pod.condition("Ready")["reason"] == "PodFailed"
    assert pod.container()["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_an_init_container_that_fails_is_tried_again(play: Any) -> None:
    words = {"init": {"exitAfterSeconds": 1, "exitCode": 3}}
    pod = play(initContainers=[INIT], behaviors=words).run(10)
    init = pod.container(kind="initContainerStatuses")
    assert (pod.status["phase"], init["restartCount"]) == ("Pending", 1)
    assert pod.condition("Initialized")["message"] == "containers with incomplete status: [init]"


def test_init_containers_run_one_after_the_other(play: Any) -> None:
    second = INIT | {"name": "second"}
    words = {"init": {"exitAfterSeconds": 2}, "second": {"exitAfterSeconds": 2}}
    pod = play(initContainers=[INIT, second], behaviors=words).run(3)
    states = [next(iter(e["state"])) for e in pod.status["initContainerStatuses"]]
    assert states == ["terminated", "running"]
    assert pod.run(10).condition("Ready")["status"] == "True"


def test_a_sidecar_that_crashes_comes_back_and_the_pod_runs_on(play: Any) -> None:
    words = {"side": {"exitAfterSeconds": 2, "exitCode": 1}}
    pod = play(initContainers=[SIDECAR], behaviors=words).run(4)
    assert pod.status["phase"] == "Running"
    assert pod.container(kind="initContainerStatuses")["restartCount"] == 1
    assert pod.condition("Initialized")["status"] == "True"


def test_sidecars_stop_after_the_others(play: Any) -> None:
    words = {"main": {"termAfterSeconds": 2}, "side": {"termAfterSeconds": 0}}
    pod = play(initContainers=[SIDECAR], behaviors=words).run(5).delete().run(10)
    ends = [
        pod.status[kind][0]["state"]["terminated"]["finishedAt"]
        for kind in ("containerStatuses", "initContainerStatuses")
    ]
    assert ends == sorted(ends)
    assert pod.told("Killing") == ["Stopping container side", "Stopping container main"]


def test_a_startup_probe_that_never_passes_restarts_it(play: Any) -> None:
    probe = PROBE | {"failureThreshold": 3}
    pod = play({"listen": False}, container={"startupProbe": probe}).run(8)
    assert pod.told("Killing") == ["Container main failed startup probe, will be restarted"]
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 143


def test_a_container_out_of_memory_is_killed(play: Any) -> None:
    pod = play({"oomAfterSeconds": 1}, restartPolicy="Never").run(5)
    assert pod.container()["state"]["terminated"]["reason"] == "OOMKilled"
    assert pod.container()["state"]["terminated"]["exitCode"] == 137


def test_a_start_hook_that_fails_kills_the_container(play: Any) -> None:
    hook = {"postStart": {"exec": {"command": ["/bin/sh", "-c", "exit 4"]}}}
    pod = play({"postStartFails": True}, container={"lifecycle": hook}).run(1.5)
    waiting = pod.container()["state"]["waiting"]
    assert waiting["reason"] == "PostStartHookError"
    assert "command '/bin/sh -c exit 4' exited with 4" in waiting["message"]
    assert pod.told("FailedPostStartHook") == ["PostStartHook failed"]


def test_a_stop_hook_takes_from_the_grace(play: Any) -> None:
    hook = {"preStop": {"exec": {"command": ["wait"]}}}
    words = {"preStopSeconds": 2, "ignoresTerm": True}
    pod = play(words, container={"lifecycle": hook}, terminationGracePeriodSeconds=5)
    began = pod.run(3).now
    pod.delete().run(30)
    assert pod.deleted
    assert 5 <= next(u.t for u in pod.updates if u.status.get("phase") == "Failed") - 3 <= 7
    assert began < pod.now


def test_readiness_follows_the_probe(play: Any) -> None:
    words = {"unhealthySeconds": [[3, 8]], "statusWhileUnhealthy": 503}
    pod = play(words, container={"readinessProbe": PROBE | {"failureThreshold": 2}})
    ready = [pod.run(at).condition("Ready")["status"] for at in (2, 6, 12)]
    assert ready == ["True", "False", "True"]
    assert pod.told("Unhealthy") == [
        "Readiness probe failed: HTTP probe failed with statuscode: 503"
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ({"tcpSocket": {"port": 80}}, "dial tcp 10.200.0.7:80: connect: connection refused"),
        ({"exec": {"command": ["x"]}}, ""),
    ],
    ids=["tcp", "exec"],
)
def test_probes_of_all_kinds_fail_in_their_words(play: Any, kind: Any, text: str) -> None:
    words = {"listen": "exec" in kind, "healthyUntilSeconds": 0}
    pod = play(words, container={"readinessProbe": kind | {"periodSeconds": 1}}).run(5)
    assert pod.told("Unhealthy") == [f"Readiness probe failed: {text}"]


def test_policy_never_waits_for_an_image_that_is_not_there(play: Any) -> None:
    pod = play(container={"image": "nope:1", "imagePullPolicy": "Never"}).run(20)
    assert pod.container()["state"]["waiting"]["reason"] == "ErrImageNeverPull"
    assert pod.told("Failed") == ["Error: ErrImageNeverPull"]


def test_an_image_name_that_cannot_be_is_told(play: Any) -> None:
    pod = play(container={"image": "Busybox:1"}).run(3)
    assert pod.container()["state"]["waiting"]["reason"] == "InvalidImageName"
    assert pod.told("InspectFailed")[0].endswith("name (library/Busybox) must be lowercase")


def test_a_volume_that_is_missing_is_waited_for(play: Any) -> None:
    pod = play()
    why = 'MountVolume.SetUp failed for volume "v" : secret "s" not found'
    pod.life.state.missing = configuration.Missing(volumes=[why])
    pod.run(10)
    assert [round(at, 1) for at in next(iter(pod.events.values()))] == [0, 0.5, 1.5, 3.5, 7.5]
    pod.life.state.missing = configuration.Missing()
    assert pod.run(20).condition("Ready")["status"] == "True"


def test_a_pod_that_waits_for_a_volume_can_be_deleted(play: Any) -> None:
    pod = play()
    pod.life.state.missing = configuration.Missing(volumes=["missing"])
    assert pod.run(10).delete().run(13).deleted


def test_a_resource_claim_that_is_not_the_pods_keeps_it_from_its_sandbox(play: Any) -> None:
    pod = play()
    why = "pod p (u) is not allowed to use ResourceClaim c (v)"
    pod.life.state.missing = configuration.Missing(devices=why)
    pod.run(80)
    assert pod.condition("PodReadyToStartContainers")["status"] == "False"
    ((key, told),) = pod.events.items()
    said = f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"
    assert key[:3] == ("Warning", "FailedPrepareDynamicResources", said)
    assert [round(at) for at in told] == [0, 75]
    pod.life.state.missing = configuration.Missing()
    assert pod.run(160).condition("Ready")["status"] == "True"


def test_missing_configuration_is_told_at_each_sync(play: Any) -> None:
    pod = play()
    pod.life.state.missing = configuration.Missing({"main": 'configmap "c" not found'})
    pod.run(5)
    assert pod.container()["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    pod.life.state.missing = configuration.Missing()
    assert pod.run(20).condition("Ready")["status"] == "True"


def test_a_containers_own_rules_win_over_the_pods_policy(play: Any) -> None:
    codes = {"operator": "In", "values": [42]}
    rule = {"action": "Restart", "exitCodes": codes}
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    words = {"exitAfterSeconds": 1, "exitCode": 42}
    assert play(words, container=own).run(8).container()["restartCount"] == 1
    other = play(words | {"exitCode": 1}, container=own).run(8)
    assert other.status["phase"] == "Failed"


def test_steady_probes_need_no_waking(play: Any) -> None:
    pod = play(container={"readinessProbe": PROBE, "livenessProbe": PROBE}).run(10)
    assert pod.step() > pod.now + 30


def test_a_container_without_a_status_has_no_log_yet(play: Any) -> None:
    pod = play()
    assert (pod.life.entry("main"), pod.life.entry("other")) == ({}, None)


def test_a_pod_deleted_while_it_pulls_starts_first_and_then_goes(play: Any) -> None:
    images = {"big:1": {"pullSeconds": 10}}
    pod = play(container={"image": "big:1"}, images=images).run(3).delete().run(9)
    assert not pod.deleted
    pod.run(30)
    assert pod.deleted
    assert list(dict.fromkeys(key[1] for key in pod.events)) == [
        *("Pulling", "Pulled", "Created", "Started", "Killing")
    ]


def test_a_pod_deleted_while_its_image_is_missing_goes_at_once(play: Any) -> None:
    images = {"nope:1": {"missing": True}}
    pod = play(container={"image": "nope:1"}, images=images).run(3).delete().run(6)
    assert pod.deleted
    assert pod.status["phase"] == "Failed"
    assert pod.container()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_a_pod_that_is_not_admitted_has_failed(play: Any) -> None:
    pod = play()
    pod.rejection = ("OutOfcpu", "Node didn't have enough resource: cpu, …")
    pod.life = pod.begin()
    pod.run(5)
    assert (pod.status["phase"], pod.status["reason"]) == ("Failed", "OutOfcpu")
    assert pod.status["message"].startswith("Pod was rejected: Node didn't")
    assert "containerStatuses" not in pod.status
    assert pod.delete().run(6).deleted


def test_plain_shells_ignore_sigterm_as_first_process(play: Any) -> None:
    pod = play(container={"command": ["sleep", "3600"]}, restartPolicy="Never").run(3).delete()
    assert pod.run(20).container()["state"]["terminated"]["exitCode"] == 137


def test_a_time_scale_shrinks_behaviour_but_not_back_offs(play: Any) -> None:
    pod = play({"exitAfterSeconds": 10, "exitCode": 1}, scale=10).run(8)
    assert pod.container()["restartCount"] == 1
    assert pod.run(16).container()["restartCount"] == 2


def test_a_restart_of_ours_goes_on_where_it_was(play: Any) -> None:
    pod = play({"exitAfterSeconds": 30, "exitCode": 1}).run(10)
    pod.life = pod.begin()
    pod.run(33)
    assert pod.container()["restartCount"] == 1
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 1
    assert len(pod.told("Started")) == 1


def test_after_a_restart_of_ours_a_pod_that_was_over_can_go(play: Any) -> None:
    pod = play({"exitAfterSeconds": 1}, restartPolicy="Never").run(10)
    pod.life = pod.begin()
    assert pod.run(20).status["phase"] == "Succeeded"
    assert pod.delete().run(22).deleted


BEHAVIORS = st.fixed_dictionaries(
    {},
    optional={
        "exitAfterSeconds": st.floats(0, 20),
        "exitCode": st.integers(0, 3),
        "listenAfterSeconds": st.floats(0, 10),
        "healthyUntilSeconds": st.floats(0, 20),
        "ignoresTerm": st.booleans(),
        "termAfterSeconds": st.floats(0, 6),
        "oomAfterSeconds": st.floats(0, 20),
        "postStartFails": st.booleans(),
    },
)
ALL = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@ALL
@given(
    words=BEHAVIORS,
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    probes=st.sets(st.sampled_from(["startupProbe", "readinessProbe", "livenessProbe"])),
    delete_s=st.floats(0, 60),
)
def test_whatever_it_does_its_status_holds_together(
    play: Any, words: Any, policy: str, probes: set[str], delete_s: float
) -> None:
    pod = play(words, restartPolicy=policy, container=dict.fromkeys(probes, PROBE))
    pod.run(delete_s).delete().run(delete_s + 30)
    assert pod.deleted
    assert all(entry["started"] or not entry["ready"] for entry in pod.seen())
    counts = [entry["restartCount"] for entry in pod.seen()]
    assert counts == sorted(counts)
    phases = [update.status["phase"] for update in pod.updates]
    over = next((n for n, phase in enumerate(phases) if phase in ("Succeeded", "Failed")), None)
    assert over is not None
    assert len(set(phases[over:])) == 1


@ALL
@given(words=BEHAVIORS, gap_s=st.floats(0.1, 100))
def test_after_a_gap_the_pod_stands_where_it_would_have_stood(
    play: Any, words: Any, gap_s: float
) -> None:
    seen, slept = play(words).run(1), play(words).run(1)
    seen.run(1 + gap_s)
    slept.now += gap_s
    assert slept.run(1 + gap_s).status == seen.status


def test_containers_are_listed_by_name_and_init_containers_in_order(play: Any) -> None:
    second = {"name": "a-second", "image": INIT["image"], "imagePullPolicy": "IfNotPresent"}
    inits = [INIT | {"name": "z"}, INIT | {"name": "b"}]
    own = {"name": "main", **{k: v for k, v in second.items() if k != "name"}}
    pod = play(initContainers=inits, containers=[own, second]).run(10)
    names = [entry["name"] for entry in pod.status["containerStatuses"]]
    assert names == ["a-second", "main"]
    assert [entry["name"] for entry in pod.status["initContainerStatuses"]] == ["z", "b"]


def test_a_container_tells_its_mounts_before_it_runs_and_its_user_when_it_does(play: Any) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    groups = {"runAsUser": 7, "runAsGroup": 8, "fsGroup": 10, "supplementalGroups": [9]}
    pod = play(container={"volumeMounts": mounts}, securityContext=groups).run(5)
    assert [entry["volumeMounts"] for entry in pod.seen()] == [mounts] * len(pod.seen())
    linux = {"uid": 7, "gid": 8, "supplementalGroups": [8, 9, 10]}
    assert pod.container()["user"] == {"linux": linux}


def test_a_pod_once_initialized_stays_so(play: Any) -> None:
    words = {"side": {"termAfterSeconds": 0}, "main": {"exitAfterSeconds": 2, "exitCode": 1}}
    pod = play(initContainers=[SIDECAR], behaviors=words, restartPolicy="Never").run(10)
    assert pod.status["phase"] == "Failed"
    assert pod.condition("Initialized")["status"] == "True"


def test_what_has_ended_fails_its_probe_once_and_that_wakes_the_kubelet(play: Any) -> None:
    words = {"exitAfterSeconds": 4, "exitCode": 1}
    pod = play(words, container={"readinessProbe": PROBE}).run(16)
    first = next(at for key, times in pod.events.items() if key[1] == "BackOff" for at in times)
    ended = [update.t for update in pod.updates if _restarts(update) == 1][-1]
    assert first - ended < 6


def _restarts(update: Any) -> int:
    return max((e["restartCount"] for e in update.status.get("containerStatuses") or ()), default=0)


@pytest.mark.parametrize(
    ("probe", "url"),
    [
        ({"host": "127.0.0.1", "path": "health"}, "http://127.0.0.1:8000/health"),
        ({"scheme": "HTTPS", "path": "/a?b=1"}, "https://10.200.0.7:8000/a?b=1"),
        ({}, "http://10.200.0.7:8000"),
    ],
)
def test_a_probe_goes_where_its_spec_says(play: Any, probe: dict[str, str], url: str) -> None:
    found = {"httpGet": {"port": 8000, **probe}, "periodSeconds": 1}
    pod = play({"listen": False}, container={"readinessProbe": found}).run(3)
    assert pod.told("Unhealthy")[0].startswith(f'Readiness probe failed: Get "{url}": dial tcp')


def test_a_command_that_cannot_be_run_counts_for_nothing(play: Any) -> None:
    probe = {"exec": {"command": ["nothing"]}, "periodSeconds": 1, "failureThreshold": 1}
    pod = play({"probeError": "no such file"}, container={"livenessProbe": probe}).run(8)
    told = "Liveness probe errored and resulted in unknown state: no such file"
    assert pod.told("Unhealthy") == [told]
    assert pod.container()["restartCount"] == 0


def test_an_init_container_starts_again_by_its_own_rule(play: Any) -> None:
    codes = {"operator": "In", "values": [9]}
    rules = [{"action": "Restart", "exitCodes": codes}]
    own = INIT | {"restartPolicy": "Never", "restartPolicyRules": rules}
    words = {"init": {"exitAfterSeconds": 1, "exitCode": 9}}
    pod = play(initContainers=[own], behaviors=words, restartPolicy="Never").run(8)
    assert pod.status["phase"] == "Pending"
    assert pod.container(kind="initContainerStatuses")["restartCount"] == 1


def test_a_claim_that_is_missing_fails_sync_after_sync(play: Any) -> None:
    pod = play()
    pod.life.state.missing = configuration.Missing(claims="no such claim")
    pod.run(20)
    (times,) = (at for key, at in pod.events.items() if key[1] == "FailedMount")
    assert len(times) == 2
    pod.life.state.missing = configuration.NOTHING
    assert pod.run(40).status["phase"] == "Running"


def test_a_volume_of_the_node_that_cannot_be_mounted_is_told(play: Any) -> None:
    pod = play({"mountErrors": {"v": "is not a directory"}}).run(4)
    text = 'MountVolume.SetUp failed for volume "v" : is not a directory'
    assert pod.told("FailedMount") == [text]
    assert pod.status["phase"] == "Pending"
