"""The life of an engine's pod: phases, probes, crashes, deletion, and going on afterwards."""

import copy
import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelserve.api import wire
from servelab.node.pods import starting
from servelab.node.rules import actions

T0 = 1_800_000_000.0  # when every played pod begins
PROBE = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 2, "failureThreshold": 60}
PROBED = {"startupProbe": PROBE, "readinessProbe": PROBE | {"failureThreshold": 3}}


@pytest.fixture
def engine_pod(make_pod: Any, make_engine: Any, player: Any) -> Any:
    """An engine: 10 s of pull, 20 s of load, 40 s of warm-up, then its probes."""
    return player(make_pod(**PROBED), make_engine())


def test_phases_take_what_was_planned(engine_pod: Any) -> None:
    stamps = engine_pod.run(100).stamps()
    assert stamps.emulated_s(wire.Phase.IMAGE_PULL) == pytest.approx(10.3, abs=0.01)
    assert stamps.emulated_s(wire.Phase.WEIGHT_LOAD) == pytest.approx(20, abs=0.01)
    assert stamps.emulated_s(wire.Phase.WARM_UP) == pytest.approx(40, abs=0.01)
    assert stamps.emulated_s(wire.Phase.PROBE) < 2.1


def test_a_time_scale_shrinks_phases_but_not_probe_periods(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    pod = player(make_pod(**PROBED), make_engine(), scale=10).run(8)
    assert pod.stamps().emulated_s(wire.Phase.WARM_UP) == pytest.approx(40, abs=0.1)
    # Probed each 2 s from the first sync on; the engine serves from 7.03 s on.
    assert pod.condition("Ready")["status"] == "True"
    assert list(pod.events.values())[-1] == 3


def test_the_condition_tells_phase_and_progress(engine_pod: Any) -> None:
    engine_pod.run(20.4)
    starting = engine_pod.condition("modelserve.dev/Starting")
    assert (starting["status"], starting["reason"]) == ("True", "WeightLoad")
    assert starting["message"] == "0.5 of 1.0 GB read at 50.0 MB/s, 10 s left"


def test_the_condition_ends_with_the_sum(engine_pod: Any) -> None:
    starting = engine_pod.run(100).condition("modelserve.dev/Starting")
    assert (starting["status"], starting["reason"]) == ("False", "Started")
    assert starting["message"].startswith("started in 7")


def test_progress_is_written_at_most_every_five_seconds(engine_pod: Any) -> None:
    engine_pod.run(69)
    # Accepted, sandbox, pull begun, running, warm-up; the rest is progress.
    assert len(engine_pod.statuses) <= 5 + 69 / 5


def test_the_address_is_told_when_the_container_starts(engine_pod: Any) -> None:
    assert "podIP" not in engine_pod.run(10).status
    assert engine_pod.run(11).status["podIP"] == "10.200.0.7"
    dial = engine_pod.pod["metadata"]["annotations"]["emulator.modelserve.dev/dial"]
    assert dial == "127.0.0.1:4711"


def test_log_lines_come_at_their_share_of_a_phase(engine_pod: Any) -> None:
    engine_pod.run(100)
    assert [round(at, 1) for at, _ in engine_pod.logs] == [20.3, 50.3]


@pytest.fixture
def early_engine(make_engine: Any) -> starting.EngineStart:
    """One that listens before it is ready, from the 66th second on."""
    start: starting.EngineStart = make_engine()
    line = starting.Line(0.9, "listening", listens=True)
    last = dataclasses.replace(start.steps[-1], lines=(line,))
    return dataclasses.replace(start, steps=(*start.steps[:-1], last))


def test_an_engine_that_listens_before_it_is_ready_opens_its_port(
    make_pod: Any, early_engine: starting.EngineStart, player: Any
) -> None:
    pod = player(make_pod(**PROBED), early_engine)
    assert actions.Verb.OPEN not in pod.run(60).verbs
    verbs = pod.run(100).verbs
    assert verbs.index(actions.Verb.OPEN) < verbs.index(actions.Verb.SERVE)


def test_its_kubelet_sees_what_its_clients_see(
    make_pod: Any, early_engine: starting.EngineStart, player: Any
) -> None:
    pod = player(make_pod(**PROBED), early_engine)
    pod.run(65)
    assert all("connection refused" in text for text in pod.messages("Unhealthy"))
    assert pod.run(70).messages("Unhealthy")[-1].endswith("statuscode: 503")
    assert pod.run(100).condition("Ready")["status"] == "True"


@pytest.mark.parametrize("probe", [{"tcpSocket": {"port": 8000}}, {"httpGet": PROBE["httpGet"]}])
def test_a_probe_of_its_port_or_of_another_path_passes_before_it_is_ready(
    make_pod: Any, early_engine: starting.EngineStart, player: Any, probe: dict[str, Any]
) -> None:
    if "httpGet" in probe:
        probe = {"httpGet": probe["httpGet"] | {"path": "/v1/models"}}
    pod = player(make_pod(readinessProbe=PROBE | {"httpGet": None} | probe), early_engine)
    assert pod.run(65).condition("Ready")["status"] == "False"
    pod.run(69)
    assert (pod.condition("Ready")["status"], actions.Verb.SERVE in pod.verbs) == ("True", False)


def test_ready_follows_at_once_when_the_startup_probe_has_passed(engine_pod: Any) -> None:
    engine_pod.run(72.1)
    entries = [status["containerStatuses"][0] for status in engine_pod.statuses]
    assert (entries[-1]["started"], entries[-1]["ready"]) == (True, True)
    assert engine_pod.condition("Ready")["status"] == "True"


def test_an_image_that_is_there_is_not_pulled(engine_pod: Any) -> None:
    engine_pod.host.images.add("docker.io/vllm/vllm-openai:v1", 1)
    engine_pod.run(5)
    assert not engine_pod.messages("Pulling")
    assert engine_pod.messages("Pulled")[0].endswith("and can be accessed by the pod")


def test_policy_never_waits_for_an_image_that_is_not_there(make_pod: Any, player: Any) -> None:
    pod = player(make_pod(imagePullPolicy="Never")).run(60)
    assert pod.container()["state"]["waiting"]["reason"] == "ErrImageNeverPull"


def test_a_container_that_is_no_engine_is_ready_at_once(make_pod: Any, player: Any) -> None:
    pod = player(make_pod(image="nginx:1", **PROBED)).run(13)
    assert pod.condition("Ready")["status"] == "True"
    assert "annotations" not in pod.pod["metadata"]


def test_init_containers_are_done_before_the_others_start(make_pod: Any, player: Any) -> None:
    raw = make_pod(image="nginx:1")
    raw["spec"]["initContainers"] = [{"name": "init", "image": "busybox:1"}]
    pod = player(raw).run(5)
    assert pod.condition("Initialized")["status"] == "False"
    assert pod.container()["state"] == {"waiting": {"reason": "PodInitializing"}}
    pod.run(30)
    assert pod.status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert pod.condition("Ready")["status"] == "True"


def test_a_worker_that_dies_restarts_its_container(engine_pod: Any) -> None:
    engine_pod.run(100).life.exited("engine", 137, engine_pod.now)
    engine_pod.run(102)
    assert engine_pod.container()["restartCount"] == 1
    assert engine_pod.container()["lastState"]["terminated"]["exitCode"] == 137
    assert engine_pod.condition("Ready")["status"] == "False"
    assert engine_pod.run(200).condition("Ready")["status"] == "True"


def test_an_address_is_there_before_the_image_and_is_asked_for_again_if_its_worker_dies(
    engine_pod: Any,
) -> None:
    engine_pod.run(5)
    assert engine_pod.verbs == ["reserve"]
    engine_pod.life.exited("engine", 137, engine_pod.now)
    assert engine_pod.run(100).verbs == ["reserve", "reserve", "serve"]
    assert engine_pod.container()["restartCount"] == 0


@pytest.mark.timeout(60)
def test_an_engine_whose_address_comes_late_serves_then(engine_pod: Any) -> None:
    engine_pod.slow_reserve = True
    engine_pod.run(100)
    assert engine_pod.verbs == ["reserve"]
    engine_pod.life.reserved("engine", "127.0.0.1:4711")
    assert engine_pod.run(101).verbs == ["reserve", "serve"]


def test_a_crash_while_loading_never_serves_the_dead(engine_pod: Any) -> None:
    engine_pod.run(15).life.exited("engine", 1, engine_pod.now)
    engine_pod.run(15.5).life.exited("engine", 1, engine_pod.now)
    engine_pod.run(26)
    assert "serve" not in engine_pod.verbs
    assert engine_pod.run(120).condition("Ready")["status"] == "True"


def test_a_long_back_off_shows_in_the_status(engine_pod: Any) -> None:
    for crash in range(6):
        engine_pod.run(12 + 200 * crash).life.exited("engine", 1, engine_pod.now)
    engine_pod.run(12 + 1000 + 80)
    waiting = engine_pod.container()["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"].startswith("back-off 2m40s restarting failed container=engine")


def test_a_startup_probe_that_never_passes_kills_the_container(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    probe = PROBE | {"failureThreshold": 3}
    pod = player(make_pod(startupProbe=probe), make_engine()).run(18)
    assert pod.messages("Killing") == ["Container engine failed startup probe, will be restarted"]
    assert pod.container()["restartCount"] == 1


def test_an_engine_drains_before_its_pod_goes(engine_pod: Any) -> None:
    engine_pod.drain_s = 7
    engine_pod.run(100).delete()
    assert not engine_pod.run(106).deleted
    assert engine_pod.run(110).deleted
    assert engine_pod.status["phase"] == "Succeeded"
    assert engine_pod.container()["state"]["terminated"]["reason"] == "Completed"


def test_an_engine_that_does_not_drain_in_time_is_killed(engine_pod: Any) -> None:
    engine_pod.drain_s = 60
    engine_pod.run(100).delete(grace_s=30)
    assert engine_pod.run(133.5).deleted
    assert engine_pod.container()["state"]["terminated"]["exitCode"] == 137
    assert engine_pod.verbs[-1] == "kill"


def test_an_engine_removed_by_force_finishes_its_streams_for_two_seconds(engine_pod: Any) -> None:
    engine_pod.drain_s = 60
    pod = engine_pod.run(100)
    pod.pod["metadata"] |= {"deletionTimestamp": "now", "deletionGracePeriodSeconds": 0}
    told = len(pod.statuses)
    pod.delete()
    pod.life.removed()
    assert pod.run(102).verbs[-1] == "drain"
    assert pod.run(106).verbs[-1] == "kill"
    assert (pod.life.finished, pod.deleted, len(pod.statuses)) == (True, False, told)


def test_a_pod_deleted_while_pulling_ends_its_pull_and_the_image_stays(engine_pod: Any) -> None:
    engine_pod.run(5).delete()
    assert not engine_pod.run(10).deleted
    assert engine_pod.run(14).deleted
    assert engine_pod.status["phase"] == "Failed"
    assert engine_pod.verbs == ["reserve", "kill"]
    assert engine_pod.host.images.present("vllm/vllm-openai:v1")


@pytest.mark.parametrize("when_s", [0.05, 5, 15, 40, 70.5, 90])
def test_a_pod_goes_on_where_it_was_after_a_restart(engine_pod: Any, when_s: float) -> None:
    engine_pod.run(when_s).restart()
    stamps = engine_pod.run(120).stamps()
    assert engine_pod.condition("Ready")["status"] == "True"
    assert stamps.emulated_s(wire.Phase.IMAGE_PULL) == pytest.approx(10.3, abs=0.3)
    assert stamps.emulated_s(wire.Phase.WEIGHT_LOAD) == pytest.approx(20, abs=0.2)
    assert stamps.emulated_s(wire.Phase.WARM_UP) == pytest.approx(40, abs=0.2)
    assert engine_pod.container()["restartCount"] == 0


@pytest.mark.parametrize("when_s", [15, 40, 69, 75])
def test_a_container_whose_start_was_told_by_its_stamps_alone_ran_on(
    engine_pod: Any, when_s: float
) -> None:
    pulling = copy.deepcopy(engine_pod.run(5).status)
    engine_pod.run(when_s).pod["status"] = pulling
    engine_pod.restart()
    stamps = engine_pod.run(120).stamps()
    assert engine_pod.condition("Ready")["status"] == "True"
    assert engine_pod.container()["restartCount"] == 0
    assert len(engine_pod.messages("Started")) == 1
    assert stamps.emulated_s(wire.Phase.WARM_UP) == pytest.approx(40, abs=0.2)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("scale", [1.0, 60.0])
@pytest.mark.parametrize("when_s", [0.05, 0.25, 0.6, 1, 2, 5])
@pytest.mark.parametrize("gap_s", [0, 0.5, 3, 30])
def test_after_any_gap_it_goes_on_though_its_address_comes_late(
    make_pod: Any, make_engine: Any, player: Any, scale: float, when_s: float, gap_s: float
) -> None:
    pod = player(make_pod(**PROBED), make_engine(), scale=scale).run(when_s)
    pod.now += gap_s
    pod.restart()
    pod.slow_reserve = True
    pod.run(when_s + gap_s + 1)
    pod.slow_reserve = False
    if "reserve" in pod.verbs:
        pod.life.reserved("engine", "127.0.0.1:4711")
    assert pod.run(when_s + gap_s + 400).condition("Ready")["status"] == "True"


def test_phases_that_passed_while_nobody_looked_are_over(engine_pod: Any) -> None:
    engine_pod.run(15)
    engine_pod.now += 30
    engine_pod.restart()
    stamps = engine_pod.run(120).stamps()
    assert stamps.emulated_s(wire.Phase.WEIGHT_LOAD) == pytest.approx(20, abs=0.01)
    assert stamps.emulated_s(wire.Phase.WARM_UP) == pytest.approx(40, abs=0.01)


def test_an_engine_that_served_serves_again_at_once(engine_pod: Any) -> None:
    engine_pod.run(100).restart()
    engine_pod.verbs.clear()
    engine_pod.run(100.1)
    assert engine_pod.verbs == ["reserve", "serve"]
    assert all(s["conditions"][2]["status"] == "True" for s in engine_pod.statuses[-1:])


def test_a_pod_set_unready_while_nobody_looked_is_ready_again(engine_pod: Any) -> None:
    engine_pod.run(100)
    engine_pod.condition("Ready")["status"] = "False"
    engine_pod.restart()
    assert engine_pod.run(100.1).condition("Ready")["status"] == "True"


def test_a_terminating_pod_is_finished_after_a_restart(engine_pod: Any) -> None:
    engine_pod.drain_s = 20
    engine_pod.run(100).delete()
    engine_pod.run(101).restart()
    assert engine_pod.run(104).deleted
    assert engine_pod.status["phase"] == "Succeeded"


def test_a_pod_in_back_off_goes_on_after_a_restart(engine_pod: Any) -> None:
    for after in (12, 13):
        engine_pod.run(after).life.exited("engine", 1, engine_pod.now)
    engine_pod.run(14).restart()
    assert engine_pod.run(120).condition("Ready")["status"] == "True"


INPUT = st.sampled_from(["wait", "crash", "restart", "delete", "long"])


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(inputs=st.lists(INPUT, max_size=12), scale=st.sampled_from([1.0, 25.0]))
def test_whatever_happens_a_pod_ends_ready_or_gone(
    inputs: list[str], scale: float, make_pod: Any, make_engine: Any, player: Any
) -> None:
    pod = player(make_pod(**PROBED), make_engine(), scale=scale)
    for word in inputs:
        if word == "crash":
            pod.life.exited("engine", 1, pod.now)
        elif word == "restart" and not pod.deleted:
            pod.restart()
        elif word == "delete":
            pod.delete()
        pod.run(pod.now - T0 + (40 if word == "long" else 3))
    pod.run(pod.now - T0 + 1000)
    assert pod.deleted or pod.condition("Ready")["status"] == "True"


def test_a_status_patch_holds_our_keys_only(engine_pod: Any) -> None:
    engine_pod.pod["status"]["ephemeralContainerStatuses"] = []
    before = copy.deepcopy(engine_pod.pod["status"])
    after = engine_pod.run(100).status
    assert after["ephemeralContainerStatuses"] == before["ephemeralContainerStatuses"]


def test_a_sidecar_stops_as_soon_as_the_engine_has_drained(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    raw = make_pod(**PROBED)
    side = {"name": "side", "image": "envoy:1", "restartPolicy": "Always"}
    raw["spec"] |= {"initContainers": [side], "terminationGracePeriodSeconds": 60}
    pod = player(raw, make_engine(), drain_s=4.0).run(130)
    assert pod.condition("Ready")["status"] == "True"
    pod.delete(grace_s=60)
    assert not pod.run(133).deleted
    assert pod.run(140).deleted
    ends = [
        pod.status[k][0]["state"]["terminated"]
        for k in ("containerStatuses", "initContainerStatuses")
    ]
    assert [each["exitCode"] for each in ends] == [0, 143]


def test_an_engine_that_restarts_starts_as_the_node_says_then(
    engine_pod: Any, make_engine: Any
) -> None:
    quick = make_engine(load_s=2)
    object.__setattr__(engine_pod.life.state.around, "again", lambda pod, container: quick)
    engine_pod.run(100).life.exited("engine", 1, engine_pod.now)
    stamps = engine_pod.run(200).stamps()
    assert stamps.emulated_s(wire.Phase.WEIGHT_LOAD) == pytest.approx(2, abs=0.1)
    assert stamps.emulated_s(wire.Phase.IMAGE_PULL) == 0
