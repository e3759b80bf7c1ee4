"""What a run came to: figures that are known are numbers, the others are null."""

import json
from collections.abc import Callable

import pytest

from servelab.sim import outcome, running, scenario

Build = Callable[..., scenario.Scenario]


def test_without_requests_there_are_no_percentiles_and_no_share(scenario_of: Build) -> None:
    found = scenario_of()
    came_to = outcome.of(running.run(found, "committed"), found).to_json()
    assert came_to["ttft_p95_s"] is came_to["slo_attainment"] is came_to["cost"] is None
    assert came_to["gpu_hours"] == 0
    json.dumps(came_to, allow_nan=False)


def test_a_fixed_count_costs_its_gpus_from_bind_to_end(scenario_of: Build) -> None:
    found = scenario_of([{"steady": {"perSecond": 1, "seconds": 100}}], gpuHourPrice=2)
    run = running.run(found, "fixed-3")
    came_to = outcome.of(run, found)
    assert came_to.gpu_hours == pytest.approx(3 * (run.end_s - run.start_s) / 3600)
    assert came_to.cost == pytest.approx(2 * came_to.gpu_hours)
    assert came_to.peak_replicas == came_to.cold_starts == 3
    assert 0 < came_to.idle_gpu_hours < came_to.gpu_hours


def test_the_objective_is_met_by_those_that_got_all_of_it(scenario_of: Build) -> None:
    traffic = [{"steady": {"perSecond": 1, "seconds": 100}}]
    strict = {"ttftSeconds": 5, "tpotSeconds": 1e-6}
    loose, hard = scenario_of(traffic), scenario_of(traffic, objective=strict)
    assert outcome.of(running.run(loose, "fixed-1"), loose).slo_attainment == 1
    assert outcome.of(running.run(hard, "fixed-1"), hard).slo_attainment == 0


def test_the_peak_of_several_models_is_that_of_their_sum(scenario_of: Build) -> None:
    found = scenario_of([{"steady": {"perSecond": 1, "seconds": 20}}], copies=3)
    run = running.run(found, "fixed-2")
    assert outcome.of(run, found).peak_replicas == 6
    assert [each.peak_replicas for each in outcome.by_model(run, found).values()] == [2, 2, 2]
