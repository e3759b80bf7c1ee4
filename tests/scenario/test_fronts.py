"""Each policy at its best: on a few short rows no other front crosses that of Committed.

The rows of the published table take minutes; these are like them, and take seconds.
"""

import json
from collections.abc import Sequence

import pytest

from servelab.sim import reading
from servelab.sweep import families, fronts, pool, sweeping, task

LINES = task.Beside("", "row")
RIVALS = ("hpa", "knative", families.FIXED)

STEADY = {"steady": {"perSecond": 2, "seconds": 400}, "input": 512, "output": 1200}
BURSTS = {"gamma": {"perSecond": 3, "cv": 4, "seconds": 300}, "input": 1000, "output": 200}
ON_OFF = {"onOff": {"perSecond": 4, "onSeconds": 100, "offSeconds": 900, "seconds": 2100}}


def row(traffic: dict[str, object], warm_up_s: int) -> reading.Document:
    """A model of 8 slots that takes ``warm_up_s`` and a few seconds more to start."""
    spec = {
        "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
        "gpu": {"product": "NVIDIA-H100-80GB-HBM3"},
        "engine": {"batching": {"maxSequences": 8}},
        "storage": {"readBandwidth": "8GB/s"},
        "coldStart": {"imageSize": "100MB", "warmUpSeconds": warm_up_s},
        "scaling": {"maxReplicas": 16},
        "gateway": {"hold": {"maxRequests": 100_000, "maxSeconds": 3600}},
    }
    content = {
        "pools": [{"gpu": "NVIDIA-H100-80GB-HBM3", "nodes": 2}],
        "models": [{"spec": spec, "traffic": [traffic]}],
        "stepJitter": 0,
    }
    return reading.load(json.dumps(content), "row")


def drawn(
    document: reading.Document, floors: Sequence[int], rivals: Sequence[str] = RIVALS
) -> list[fronts.Front]:
    grids = [(name, families.points(document, name, floors)) for name in ("committed", *rivals)]
    points = [point for _, grid in grids for point in grid]
    memory = sweeping.Forgetful()
    figures = sweeping.sweep(points, LINES, "", memory, lambda tasks: pool.local(tasks, 1))
    setups = iter(sweeping.setups(points, figures, 1))
    return fronts.of([(name, [next(setups) for _ in grid]) for name, grid in grids], ())


@pytest.mark.parametrize(
    ("traffic", "warm_up_s", "floors"),
    [
        pytest.param(STEADY, 296, (0, 2), id="a step, slow to start"),
        pytest.param(BURSTS, 86, (0, 1), id="bursts"),
        pytest.param(ON_OFF, 86, (0, 1), id="on and off"),
    ],
)
def test_no_other_policy_crosses_the_front_of_committed(
    traffic: dict[str, object], warm_up_s: int, floors: Sequence[int]
) -> None:
    ours, *others = drawn(row(traffic, warm_up_s), floors)
    assert len(ours.points) >= 3
    ahead = {each.policy: [e.to_json() for e in each.points if e.ahead] for each in others}
    assert {name: points for name, points in ahead.items() if points} == {}


@pytest.mark.parametrize("per_s", [1.0, 1.1])
def test_committed_from_a_count_that_is_just_enough_costs_no_more_than_the_count(
    per_s: float,
) -> None:
    """A replica that is full now and then: with patience no second one is ordered for it."""
    steady = {"poisson": {"perSecond": per_s, "seconds": 600}, "input": 512, "output": 1000}
    _, fixed = drawn(row(steady, 296), (1,), (families.FIXED,))
    assert not fixed.crosses
