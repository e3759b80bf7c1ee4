"""Invariants 6 and 7: figures that are missing, odd, or of pods on their way out."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.decide import observation, record

# The plant's class lives in conftest.py, which no test can import by name.
Plants = Any

State = observation.ReplicaState
FEW = settings(max_examples=8, deadline=None)


def steadily(rate_per_s: float, until_s: float) -> list[float]:
    return [i / rate_per_s for i in range(int(rate_per_s * until_s))]


BAD_VALUES = [None, math.nan, math.inf, -math.inf, -1.0, 1e300]


@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("which", ["waiting", "running", "both", "one of them"])
def test_odd_engine_figures_never_shrink_and_recover(
    plant: Plants, parameters: observation.Parameters, value: float | None, which: str
) -> None:
    """Invariant 6, engines: traffic ends just as the figures go bad, of all or of one."""

    def odd(seen: observation.Replica) -> observation.Replica:
        waiting = seen.waiting if which == "running" else value
        return replace(seen, waiting=waiting, running=seen.running if which == "waiting" else value)

    def distort(seen: observation.Observation, now_s: float) -> observation.Observation:
        if now_s < 100:
            return seen
        few = 1 if which == "one of them" else len(seen.replicas)
        found = (*map(odd, seen.replicas[:few]), *seen.replicas[few:])
        return replace(seen, replicas=found)

    given_ = replace(parameters, cold_start_s=20.0, cooldown_s=60.0)
    run = plant(given_, steadily(2, 100), cold_start_s=20.0, step_s=1, distort=distort).run(100)
    count = run.count
    run.run(500)
    assert run.count == count > 1
    assert not run.decisions[-1].signal_ok
    run.distort = lambda seen, now_s: seen
    run.run(700)
    assert run.decisions[-1].signal_ok
    assert run.count == 0


def test_silent_gateways_never_shrink(plant: Plants, parameters: observation.Parameters) -> None:
    """Invariant 6, gateways: none live is no signal, whatever their last figures were."""

    def distort(seen: observation.Observation, now_s: float) -> observation.Observation:
        return replace(seen, signal=observation.GatewaySignal()) if now_s >= 400 else seen

    run = plant(parameters, steadily(2, 400), distort=distort).run(400)
    count = run.count
    run.run(2000)
    assert run.count == count > 1
    assert not run.decisions[-1].signal_ok
    assert record.Reason.NO_SIGNAL in run.decisions[-1].limits


def seen_late(
    lag_s: float, *more: observation.Replica
) -> Callable[[observation.Observation, float], observation.Observation]:
    """What is seen where the watch shows pods so much later, and these besides."""

    def distort(seen: observation.Observation, now_s: float) -> observation.Observation:
        known = (each for each in seen.replicas if each.created_s <= now_s - lag_s)
        return replace(seen, replicas=(*known, *more))

    return distort


@given(
    load=st.integers(0, 1000),
    waiting=st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    count=st.integers(1, 5),
    room=st.sampled_from([None, 0, 1]),
    lag_s=st.sampled_from([0.0, 3.0]),
)
@settings(max_examples=15, deadline=None)
def test_terminating_pods_change_nothing(
    plant: Plants,
    parameters: observation.Parameters,
    load: int,
    waiting: float | None,
    count: int,
    room: int | None,
    lag_s: float,
) -> None:
    """Invariant 7: two plants, the second with the figures of pods on their way out.

    Both grow, shrink under way while requests are long, and sleep; also where GPUs are short, and
    where the watch shows a pod only some time after it was ordered.
    """
    ghosts = tuple(
        observation.Replica(
            f"ghost-{i}", "", State.TERMINATING, 0.0, in_flight=load, waiting=waiting, running=3.0
        )
        for i in range(count)
    )
    rules = replace(parameters, cold_start_s=20.0, drain_s=5.0, cooldown_s=60.0)
    rules = replace(rules, gpus=observation.GpuRoom(room))
    arrivals = [*steadily(3, 100), *(100 + at_s for at_s in steadily(0.3, 150))]
    alone, haunted = (
        plant(rules, arrivals, cold_start_s=20.0, step_s=1, distort=seen).run(450)
        for seen in (seen_late(lag_s), seen_late(lag_s, *ghosts))
    )
    assert haunted.writes == alone.writes
    assert alone.writes[-1][1] == 0
