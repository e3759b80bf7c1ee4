"""The fluid model of the backlog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.decide import forecast


def fluid(rate: float, ready: int, *starting_s: float) -> forecast.Fluid:
    return forecast.Fluid(rate, 0.8, 8, ready, starting_s)


@pytest.mark.parametrize(
    ("what", "backlog", "expected"),
    [
        pytest.param(fluid(2, 0), 10, 190, id="nothing serves: it grows at the arrival rate"),
        pytest.param(fluid(0, 1), 100, 28, id="one replica drains it"),
        pytest.param(fluid(0, 5), 100, 0, id="it is never below zero"),
        pytest.param(fluid(0, 0, 40.0), 100, 60, id="a starting one helps from its instant on"),
        pytest.param(fluid(0, 0, 40.0, 65.0), 100, 40, id="each from its own"),
        pytest.param(fluid(0, 0, 200.0), 100, 100, id="one past the horizon does not"),
    ],
)
def test_the_backlog_when_a_replica_ordered_now_could_help(
    what: forecast.Fluid, backlog: float, expected: float
) -> None:
    assert forecast.backlog_after(what, backlog, 90) == pytest.approx(expected)


def test_a_backlog_that_was_gone_grows_again_only_from_zero() -> None:
    assert forecast.backlog_after(fluid(2, 3), 1, 90) == 0


@pytest.mark.parametrize(
    ("what", "ahead", "expected"),
    [
        pytest.param(fluid(0, 1), -1, 0.0, id="a free slot: at once"),
        pytest.param(fluid(0, 1), 0, 1.25, id="full: one slot comes free"),
        pytest.param(fluid(0, 0, 41.0), 0, 41.0, id="none ready: when the next one is"),
        pytest.param(fluid(0, 0, 41.0), 7, 41.0, id="its slots are taken up at once"),
        pytest.param(fluid(0, 0, 41.0), 8, 42.25, id="past its slots one waits for one to finish"),
        pytest.param(fluid(0, 0, 41.0, 60.0), 30, 60.0, id="the second takes up the rest"),
        pytest.param(fluid(0, 0), 3, None, id="nothing in sight"),
    ],
)
def test_the_wait_a_new_request_must_expect(
    what: forecast.Fluid, ahead: float, expected: float | None
) -> None:
    assert forecast.wait_s(what, ahead) == (None if expected is None else pytest.approx(expected))


@given(
    backlog=st.floats(0, 1000),
    rate=st.floats(0, 50),
    ready=st.integers(0, 20),
    starting=st.lists(st.floats(0, 400), max_size=10).map(sorted),
    later=st.floats(0, 400),
)
def test_one_more_replica_never_leaves_more(
    backlog: float, rate: float, ready: int, starting: list[float], later: float
) -> None:
    fewer = forecast.Fluid(rate, 0.8, 8, ready, starting)
    more = forecast.Fluid(rate, 0.8, 8, ready, sorted([*starting, later]))
    left = forecast.backlog_after(fewer, backlog, 90)
    assert 0 <= forecast.backlog_after(more, backlog, 90) <= left + 1e-6
