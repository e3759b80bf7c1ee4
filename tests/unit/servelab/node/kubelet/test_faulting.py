"""Faults of a pod: what its status, its events and its log show, and how it recovers."""

from typing import Any

import pytest

from modelserve.api import faults as api
from servelab.node.faults import fault

T0 = 1_800_000_000.0
PROBE = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 2, "failureThreshold": 60}
PROBED = {"startupProbe": PROBE, "readinessProbe": PROBE | {"failureThreshold": 3}}
LIVE = PROBED | {"livenessProbe": PROBE | {"failureThreshold": 3, "timeoutSeconds": 1}}


@pytest.fixture
def engine_pod(make_pod: Any, make_engine: Any, player: Any) -> Any:
    """An engine: 10 s of pull, 20 s of load, 40 s of warm-up, then its probes."""
    return player(make_pod(**PROBED), make_engine())


def befall(pod: Any, **words: Any) -> Any:
    """The pod has that fault."""
    said = api.Fault.model_validate(words)
    target = fault.Target("uid", "n-0", T0, pod.scale, is_pod=True)
    pod.life.befall(fault.resolve([said], target), pod.now)
    return pod


def test_a_pull_that_fails_backs_off_and_succeeds_afterwards(engine_pod: Any) -> None:
    befall(engine_pod, type="ImagePullError", durationSeconds=30).run(5)
    waiting = engine_pod.container()["state"]["waiting"]
    assert waiting["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert engine_pod.messages("Failed")[0].endswith("503 Service Unavailable")
    assert engine_pod.run(200).condition("Ready")["status"] == "True"
    assert engine_pod.messages("BackOff") == ['Back-off pulling image "vllm/vllm-openai:v1"']


def test_only_pulls_of_the_named_image_fail(engine_pod: Any) -> None:
    befall(engine_pod, type="ImagePullError", image="other:1").run(100)
    assert engine_pod.condition("Ready")["status"] == "True"


def test_corrupt_weights_end_the_engine_and_it_loops(engine_pod: Any) -> None:
    befall(engine_pod, type="CorruptWeights", durationSeconds=40).run(32)
    assert engine_pod.container()["restartCount"] == 1
    assert engine_pod.container()["lastState"]["terminated"]["exitCode"] == 1
    assert any("SafetensorError" in line for _, line in engine_pod.logs)
    assert engine_pod.run(300).condition("Ready")["status"] == "True"


def test_an_engine_without_room_on_its_gpu_says_so(engine_pod: Any) -> None:
    befall(engine_pod, type="OutOfGPUMemory").run(60)
    assert any("CUDA out of memory" in line for _, line in engine_pod.logs)
    assert engine_pod.run(120).messages("BackOff")


def test_a_crash_loop_ends_what_runs_and_what_starts(engine_pod: Any) -> None:
    befall(engine_pod, type="CrashLoop", afterSeconds=100, exitCode=3, durationSeconds=60)
    engine_pod.run(106)
    assert engine_pod.container()["lastState"]["terminated"]["exitCode"] == 3
    assert engine_pod.messages("BackOff")
    assert engine_pod.run(400).condition("Ready")["status"] == "True"


def test_an_xid_kills_the_engine_and_it_finds_no_gpu_until_that_is_over(engine_pod: Any) -> None:
    befall(engine_pod, type="XID", afterSeconds=100, durationSeconds=20).run(113)
    said = [line for _, line in engine_pod.logs]
    assert any("CUDA error" in line for line in said)
    assert any("CUDA unknown error" in line for line in said)
    assert engine_pod.run(400).condition("Ready")["status"] == "True"


def test_an_xid_of_an_application_leaves_the_gpu_well(engine_pod: Any) -> None:
    befall(engine_pod, type="XID", xid=31, afterSeconds=100).run(180)
    assert engine_pod.condition("Ready")["status"] == "True"
    assert engine_pod.container()["restartCount"] == 1


def test_a_hung_engine_is_killed_by_its_liveness_probe(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    pod = player(make_pod(**LIVE), make_engine())
    pod.pod["spec"]["terminationGracePeriodSeconds"] = 5
    pod.begin()
    befall(pod, type="HungEngine", afterSeconds=100, durationSeconds=10).run(120)
    assert "disturb" in pod.verbs
    assert any("context deadline exceeded" in text for text in pod.messages("Unhealthy"))
    assert pod.container()["restartCount"] == 1
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 137


def test_a_hang_that_ends_leaves_the_engine_as_it_was(engine_pod: Any) -> None:
    befall(engine_pod, type="HungEngine", afterSeconds=100, durationSeconds=10).run(107)
    assert engine_pod.condition("Ready")["status"] == "False"
    assert engine_pod.run(115).condition("Ready")["status"] == "True"
    assert engine_pod.container()["restartCount"] == 0


def test_a_slow_engine_stays_ready(engine_pod: Any) -> None:
    befall(engine_pod, type="SlowEngine", factor=5, afterSeconds=100).run(150)
    assert engine_pod.condition("Ready")["status"] == "True"
    assert engine_pod.verbs[-1] == "disturb"


def test_an_engine_that_starts_while_it_is_slow_is_told_before_it_serves(engine_pod: Any) -> None:
    befall(engine_pod, type="SlowEngine").run(100)
    assert engine_pod.verbs == ["reserve", "disturb", "serve"]


def test_faults_taken_back_are_over(engine_pod: Any) -> None:
    befall(engine_pod, type="HungEngine", afterSeconds=90).run(97)
    engine_pod.life.befall(fault.NONE, engine_pod.now)
    assert engine_pod.run(100).condition("Ready")["status"] == "True"
    assert engine_pod.verbs[-2:] == ["disturb", "disturb"]
