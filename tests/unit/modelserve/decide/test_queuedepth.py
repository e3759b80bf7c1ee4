"""Policy QueueDepth: demand over target, as the HPA rounds it."""

import pytest

from modelserve.api import spec as api
from modelserve.decide import windows
from modelserve.testing import looks


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param(api.QueueDepthCounts.DEMAND, 7, id="all open requests"),
        pytest.param(api.QueueDepthCounts.WAITING, 5, id="those that wait"),
    ],
)
def test_queue_depth_is_demand_over_target(counts: api.QueueDepthCounts, expected: int) -> None:
    decision = looks.decide(
        looks.seen(looks.pod("a", load=8), looks.pod("b", load=8), held=32),
        policy=api.Policy.QUEUE_DEPTH,
        counts=counts,
        target_queue_depth=7.0,
        up=windows.Direction(),
    )
    assert decision.desired == expected


@pytest.mark.parametrize(
    ("load", "expected"),
    [pytest.param(7, 1, id="within"), pytest.param(8, 2, id="beyond")],
)
def test_queue_depth_has_the_tolerance_of_the_hpa(load: int, expected: int) -> None:
    decision = looks.decide(
        looks.seen(looks.pod("a", load=load)), policy=api.Policy.QUEUE_DEPTH, target_queue_depth=6.5
    )
    assert decision.desired == expected
