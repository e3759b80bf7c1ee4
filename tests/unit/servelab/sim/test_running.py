"""Runs on the virtual clock keep to arithmetic: nothing is lost, queues are as long as known."""

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve import errors
from servelab.sim import outcome, reading, running, scenario

Build = Callable[..., scenario.Scenario]

FEW = settings(max_examples=15, deadline=None)
FEWER = settings(max_examples=4, deadline=None)
POLICIES = ("committed", "queue-depth", "hpa", "keda", "knative", "kubeai", "aibrix-apa", "fixed-2")


def poisson(per_s: float, seconds: float, **lengths: Any) -> list[dict[str, Any]]:
    return [{"poisson": {"perSecond": per_s, "seconds": seconds}, **lengths}]


@given(
    per_s=st.floats(0.05, 12),
    seconds=st.floats(5, 200),
    output=st.integers(1, 600),
    policy=st.sampled_from(POLICIES),
    gpus=st.sampled_from([1, 2, 8]),
    seed=st.integers(0, 1000),
)
@FEW
def test_every_request_ends_once_and_littles_law_holds(
    scenario_of: Build,
    per_s: float,
    seconds: float,
    output: int,
    policy: str,
    gpus: int,
    seed: int,
) -> None:
    found = scenario_of(poisson(per_s, seconds, output=output), gpus=gpus, seed=seed)
    records = running.run(found, policy).models[0].records
    assert records.ended == records.arrived
    if records.completed == records.arrived:
        assert records.open_s == pytest.approx(sum(records.e2e_s), rel=1e-6, abs=1e-6)


@given(clients=st.integers(1, 30), think_s=st.floats(0, 20), seed=st.integers(0, 99))
@FEWER
def test_a_closed_loop_keeps_to_the_response_time_law(
    scenario_of: Build, clients: int, think_s: float, seed: int
) -> None:
    """Throughput is clients / (response + think time)."""
    loop = {"clients": clients, "thinkSeconds": think_s, "seconds": 1000}
    found = scenario_of([{"closed": loop}], model={"initialReplicas": 4}, seed=seed)
    records = running.run(found, "fixed-4").models[0].records
    per_s = clients / (statistics.fmean(records.e2e_s) + think_s)
    assert records.completed == pytest.approx(per_s * 1000, rel=0.05, abs=2 * clients)


def test_one_request_at_a_time_waits_as_in_an_m_d_1_queue(scenario_of: Build) -> None:
    """Pollaczek-Khinchine: the mean wait is ρ S / (2 (1 − ρ))."""
    engine = {"engine": {"batching": {"mode": "none", "maxSequences": 1}}}
    alone = scenario_of([{"steady": {"perSecond": 0.01, "seconds": 1000}}], spec=engine)
    service_s = statistics.fmean(running.run(alone, "fixed-1").models[0].records.e2e_s)
    busy = 0.7
    loaded = scenario_of(poisson(busy / service_s, 8000 * service_s), spec=engine)
    e2e_s = running.run(loaded, "fixed-1").models[0].records.e2e_s
    expected_s = service_s * (1 + busy / (2 * (1 - busy)))
    assert statistics.fmean(e2e_s) == pytest.approx(expected_s, rel=0.1)


def test_no_traffic_costs_nothing_and_takes_no_decisions(scenario_of: Build) -> None:
    run = running.run(scenario_of(), "committed")
    assert run.models[0].ledger.gpu_s == 0
    assert run.models[0].decisions == 1


def test_what_was_there_without_traffic_goes_after_the_cooldown(scenario_of: Build) -> None:
    found = scenario_of(model={"initialReplicas": 2}, scaling={"cooldownSeconds": 100})
    run = running.run(found, "committed")
    assert run.models[0].writes[-1].after == 0
    assert run.models[0].writes[-1].at_s == pytest.approx(run.start_s + 100, abs=2)


@given(early_s=st.floats(-3, 3))
@FEW
def test_a_request_around_the_zero_decision_is_served(scenario_of: Build, early_s: float) -> None:
    second = {"steady": {"perSecond": 1, "seconds": 0.5}, "startSeconds": 150 + early_s}
    first = {"steady": {"perSecond": 1, "seconds": 0.5}, "output": 10}
    found = scenario_of([first, second], scaling={"cooldownSeconds": 120})
    run = running.run(found, "committed")
    assert run.models[0].records.completed == 2
    assert run.models[0].writes[-1].after == 0


@pytest.mark.parametrize("policy", [*running.OURS, "kubeai", "aibrix-kpa", "ray-serve"])
def test_every_policy_serves_all_that_comes(scenario_of: Build, policy: str) -> None:
    records = running.run(scenario_of(poisson(2, 200, output=300)), policy).models[0].records
    assert records.completed == records.arrived


@given(seed=st.integers(0, 99), on_s=st.floats(5, 100), off_s=st.floats(5, 400))
@FEWER
def test_nobody_beats_the_oracle_to_the_first_token(
    scenario_of: Build, seed: int, on_s: float, off_s: float
) -> None:
    law = {"perSecond": 3, "onSeconds": on_s, "offSeconds": off_s, "seconds": 900}
    found = scenario_of([{"onOff": law, "output": 400}], seed=seed)
    best = outcome.of(running.run(found, "oracle"), found).ttft_p95_s
    for policy in ("committed", "hpa", "keda", "knative"):
        assert best <= outcome.of(running.run(found, policy), found).ttft_p95_s * 1.05


def test_a_step_costs_committed_less_than_others_at_the_same_wait() -> None:
    """The design's row "2 req/s for 15 min from idle"."""
    found = packaged("step")
    ours = outcome.of(running.run(found, "committed"), found)
    for policy in ("hpa", "keda", "knative"):
        theirs = outcome.of(running.run(found, policy), found)
        assert ours.gpu_hours < 0.7 * theirs.gpu_hours
        assert ours.ttft_p95_s < 1.1 * theirs.ttft_p95_s
        assert ours.peak_replicas < theirs.peak_replicas


def test_more_replicas_than_gpus_are_not_asked_for(scenario_of: Build) -> None:
    found = scenario_of(poisson(8, 300, output=800), gpus=2)
    ledger = running.run(found, "committed").models[0].ledger
    assert 2 <= ledger.peak <= 3
    assert max(count for _, count in ledger.ready) == 2


def test_models_share_a_pool_and_get_their_own_requests(scenario_of: Build) -> None:
    found = scenario_of(poisson(2, 100), copies=3, gpus=2)
    run = running.run(found, "committed")
    assert all(model.records.completed == model.records.arrived > 100 for model in run.models)
    assert outcome.of(run, found).requests == sum(m.records.arrived for m in run.models)


def test_a_hold_that_is_too_long_or_too_full_ends(scenario_of: Build) -> None:
    hold = {"gateway": {"hold": {"maxRequests": 10, "maxSeconds": 5}}}
    records = running.run(scenario_of(poisson(4, 8), spec=hold), "committed").models[0].records
    assert records.expired > 0
    assert records.refused > 0
    assert records.ended == records.arrived


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        pytest.param("hap", "no policy is called 'hap'", id="unknown policy"),
        pytest.param("oracle", "closed loop", id="oracle of a closed loop"),
    ],
)
def test_what_cannot_be_run_is_refused(scenario_of: Build, policy: str, complaint: str) -> None:
    found = scenario_of([{"closed": {"clients": 1, "seconds": 5}}])
    with pytest.raises(errors.InputError, match=complaint):
        running.run(found, policy)


def test_a_model_that_no_node_has_room_for_is_refused(scenario_of: Build) -> None:
    wide = {"gpu": {"product": "NVIDIA-H100-80GB-HBM3", "tensorParallel": 4}}
    with pytest.raises(errors.InputError, match="needs 4 × NVIDIA-H100-80GB-HBM3 on one node"):
        running.run(scenario_of(spec=wide, gpus=2), "committed")


def packaged(name: str) -> scenario.Scenario:
    return reading.parse(reading.packaged_text(name), name)


@pytest.mark.parametrize("gateways", [1, 2, 5])
def test_requests_come_to_gateways_in_turn_and_all_are_served(
    scenario_of: Build, gateways: int
) -> None:
    found = scenario_of(poisson(3, 200, output=200), gateways=gateways)
    run = running.run(found, "committed").models[0]
    assert run.records.completed == run.records.arrived > 400
    assert run.writes[-1].after == 0
