"""What an HPA's metrics ask for, with figures of Kubernetes' own tests and documentation."""

import pytest

from modelserve.api import spec as api
from servelab.policies import hpametrics
from servelab.policies.hpametrics import Metric, Source, Tolerance
from servelab.policies.observation import Observation, Pod

TOLERANCE = Tolerance()


def pods(*loads: float | None, ready: bool = True) -> tuple[Pod, ...]:
    return tuple(Pod(f"pod-{n}", ready, load) for n, load in enumerate(loads))


def pending(count: int) -> tuple[Pod, ...]:
    return tuple(Pod(f"pending-{n}", False, pending=True) for n in range(count))


def by_pod(target: float, *seen: Pod, count: int | None = None) -> int | None:
    total = len(seen) if count is None else count
    metric = Metric(target, Source.PODS)
    return hpametrics.propose(metric, TOLERANCE, Observation(total, 0.0, seen))


# replica_calculator_test.go (Kubernetes): custom metrics of pods. Readiness does not matter there.
@pytest.mark.parametrize(
    ("target", "seen", "count"),
    [
        pytest.param(15, pods(20, 10, 30), 4, id="ScaleUpCM"),
        pytest.param(15, pods(50, 10, 30, ready=False), 6, id="ScaleUpCMUnready"),
        pytest.param(15, pods(50, 15, 30, ready=False), 7, id="ScaleUpCMUnready, more of them"),
        pytest.param(20, pods(12, 12, 12, 12, 12), 3, id="ScaleDownCM"),
        pytest.param(20, pods(20, 21, 21), 3, id="ToleranceCM"),
    ],
)
def test_pods_are_averaged_and_rounded_up(target: float, seen: tuple[Pod, ...], count: int) -> None:
    assert by_pod(target, *seen) == count


def test_pending_pods_are_idle_on_the_way_up_and_do_not_count_on_the_way_down() -> None:
    assert by_pod(15, *pods(50, 10, 30), *pending(2)) == 6
    assert by_pod(15, *pods(30), *pending(2)) == 3  # idle ones would turn it down: held
    assert by_pod(50, *pods(10), *pending(4)) == 1


def test_pods_without_a_figure_are_idle_on_the_way_up_and_full_on_the_way_down() -> None:
    assert by_pod(10, *pods(30, 30, None)) == 6
    assert by_pod(10, *pods(2, 2, None, None)) == 3
    assert by_pod(10, *pods(12, 12, None)) == 3


def test_pods_on_their_way_out_do_not_count() -> None:
    going = Pod("going", True, 500, terminating=True)
    assert by_pod(15, *pods(20, 10, 30), going) == 4
    assert by_pod(15, going) is None


def test_without_any_figure_nothing_is_asked_for() -> None:
    assert by_pod(10, *pods(None, None)) is None
    assert by_pod(10) is None
    for source in (Source.EXTERNAL_AVERAGE, Source.EXTERNAL_VALUE):
        metric = Metric(5, source)
        assert hpametrics.propose(metric, TOLERANCE, Observation(3, None)) is None
        assert hpametrics.propose(metric, TOLERANCE, Observation(3, float("inf"))) is None


# The algorithm's page: 200m over 100m doubles, 50m over 100m halves.
@pytest.mark.parametrize(("load", "count"), [(200, 2), (50, 1), (105, 1), (111, 2)])
def test_the_documented_ratio_decides(load: float, count: int) -> None:
    metric = Metric(100, Source.EXTERNAL_VALUE)
    assert hpametrics.propose(metric, TOLERANCE, Observation(1, load, pods(load))) == count


VALUE, AVERAGE = Source.EXTERNAL_VALUE, Source.EXTERNAL_AVERAGE


# replica_calculator_test.go: external metrics and those of objects.
@pytest.mark.parametrize(
    ("source", "target", "total", "replicas", "ready", "count"),
    [
        pytest.param(VALUE, 4.4, 8.6, 1, 1, 2, id="ScaleUpCMExternal"),
        pytest.param(VALUE, 4.4, 8.6, 3, 1, 2, id="ScaleUpCMExternalIgnoresUnreadyPods"),
        pytest.param(VALUE, 14.334, 8.6, 5, 5, 3, id="ScaleDownCMExternal"),
        pytest.param(VALUE, 8.888, 8.6, 3, 3, 3, id="ToleranceCMExternal"),
        pytest.param(VALUE, 15, 20, 3, 3, 4, id="ScaleUpCMObject"),
        pytest.param(VALUE, 10, 50, 3, 1, 5, id="ScaleUpCMObjectIgnoresUnreadyPods"),
        pytest.param(VALUE, 20, 12, 5, 5, 3, id="ScaleDownCMObject"),
        pytest.param(VALUE, 20, 20.666, 3, 3, 3, id="ToleranceCMObject"),
        pytest.param(AVERAGE, 2.15, 8.6, 3, 3, 4, id="ScaleUpPerPodCMExternal"),
        pytest.param(AVERAGE, 2.867, 8.6, 5, 5, 3, id="ScaleDownPerPodCMExternal"),
        pytest.param(AVERAGE, 2.9, 8.6, 3, 3, 3, id="TolerancePerPodCMExternal"),
        pytest.param(AVERAGE, 5, 20, 3, 3, 4, id="ScaleUpCMPerPodObject"),
        pytest.param(AVERAGE, 2, 6, 5, 5, 3, id="ScaleDownPerPodCMObject"),
        pytest.param(AVERAGE, 5, 20.166, 4, 4, 4, id="TolerancePerPodCMObject"),
    ],
)
def test_a_metric_outside_of_pods_is_a_total(
    source: Source, target: float, total: float, replicas: int, ready: int, count: int
) -> None:
    seen = tuple(Pod(f"p{n}", n < ready) for n in range(replicas))
    metric = Metric(target, source)
    assert hpametrics.propose(metric, TOLERANCE, Observation(replicas, total, seen)) == count


def test_a_value_is_multiplied_with_ready_pods_only() -> None:
    seen = Observation(4, 20, (*pods(5, 5), *pods(None, None, ready=False)))
    assert hpametrics.propose(Metric(5, Source.EXTERNAL_VALUE), TOLERANCE, seen) == 8
    assert hpametrics.propose(Metric(5, Source.EXTERNAL_AVERAGE), TOLERANCE, seen) == 4


def test_at_zero_there_is_no_tolerance() -> None:
    for source in (Source.EXTERNAL_AVERAGE, Source.EXTERNAL_VALUE):
        counts = [
            hpametrics.propose(Metric(5, source), TOLERANCE, Observation(0, demand))
            for demand in (0, 0.1, 5, 5.1)
        ]
        assert counts == [0, 1, 1, 2]


def test_of_several_metrics_the_greatest_counts_and_a_missing_one_forbids_to_shrink() -> None:
    waiting = Metric(5, counts=api.QueueDepthCounts.WAITING)
    both = (Metric(10), waiting)
    assert hpametrics.recommend(both, TOLERANCE, Observation(4, 60, waiting=10)) == 6
    assert hpametrics.recommend(both, TOLERANCE, Observation(4, 20, waiting=60)) == 12
    assert hpametrics.recommend(both, TOLERANCE, Observation(4, 60, waiting=None)) == 6
    assert hpametrics.recommend(both, TOLERANCE, Observation(4, 20, waiting=None)) is None
    assert hpametrics.recommend(both, TOLERANCE, Observation(4, None)) is None


def test_figures_are_whole_thousandths_rounded_up() -> None:
    assert [hpametrics.milli(value) for value in (1.1, 2.3, 0.0004, 36.185, 150)] == [
        *(1100, 2300, 1, 36185, 150000)
    ]
    assert hpametrics.propose(Metric(1), TOLERANCE, Observation(0, 3.0001)) == 4
