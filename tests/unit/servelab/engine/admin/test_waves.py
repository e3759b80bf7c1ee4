"""Waves: figures as functions of time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.admin import waves

FIGURES = st.floats(0, 1e6)
TIMES = st.floats(0, 86_400)
PERIODS = st.floats(0.001, 86_400)
WAVES = st.one_of(
    st.builds(waves.Fixed, FIGURES),
    st.builds(waves.Ramp, FIGURES, FIGURES, PERIODS, st.sampled_from(waves.Then)),
    st.builds(waves.Square, FIGURES, FIGURES, PERIODS, st.floats(0.01, 0.99)),
    st.builds(waves.Sine, FIGURES, FIGURES, PERIODS),
)


def ends(wave: waves.Wave) -> tuple[float, float]:
    match wave:
        case waves.Fixed(value):
            return value, value
        case waves.Ramp(start, end, _):
            return start, end
        case waves.Square(low, high, _) | waves.Sine(low, high, _):
            return low, high
    raise AssertionError(wave)


@given(WAVES, TIMES)
def test_a_wave_stays_between_its_ends(wave: waves.Wave, t_s: float) -> None:
    low, high = sorted(ends(wave))
    slack = 1e-9 * (1 + high)
    assert low - slack <= wave.at(t_s) <= high + slack


@given(WAVES)
def test_a_wave_begins_at_its_first_end(wave: waves.Wave) -> None:
    assert wave.at(0.0) == pytest.approx(ends(wave)[0])


@given(FIGURES, FIGURES, st.integers(1, 1000), st.integers(0, 50), st.integers(0, 7))
def test_a_period_is_as_the_one_before(
    low: float, high: float, period_s: int, number: int, eighth: int
) -> None:
    t_s = period_s * eighth / 8
    later_s = t_s + period_s * number
    for wave in (waves.Square(low, high, period_s), waves.Sine(low, high, period_s)):
        assert wave.at(later_s) == pytest.approx(wave.at(t_s), abs=1e-6 * (1 + low + high))


@given(FIGURES, FIGURES, PERIODS, TIMES)
def test_a_ramp_that_holds_never_turns(start: float, end: float, over_s: float, t_s: float) -> None:
    wave = waves.Ramp(start, end, over_s)
    assert abs(end - wave.at(t_s * 1.01)) <= abs(end - wave.at(t_s)) + 1e-6
    assert wave.at(over_s) == end


@pytest.mark.parametrize(("t_s", "value"), [(0, 0), (5, 20), (10, 0), (12.5, 10)])
def test_a_ramp_may_start_again(t_s: float, value: float) -> None:
    assert waves.Ramp(0, 40, 10, waves.Then.REPEAT).at(t_s) == pytest.approx(value)


@pytest.mark.parametrize(("t_s", "value"), [(0, 1), (7.4, 1), (7.5, 9), (9.9, 9), (10, 1)])
def test_a_square_is_high_for_its_duty(t_s: float, value: float) -> None:
    assert waves.Square(1, 9, 10, duty=0.25).at(t_s) == value


@given(TIMES, st.one_of(st.none(), PERIODS), TIMES)
def test_a_span_holds_from_its_start_to_its_end(
    start_s: float, for_s: float | None, t_s: float
) -> None:
    span = waves.Span(start_s, for_s)
    assert span.holds(t_s) == (t_s >= start_s and (for_s is None or t_s < start_s + for_s))
