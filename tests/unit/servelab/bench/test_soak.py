"""Growth of memory out of samples, and the load that it is watched under."""

import math

import pytest

from servelab.bench import soak


def test_a_line_is_found_and_has_no_error() -> None:
    found = soak.growth([(n / 2, 1e6 + 250.0 * n) for n in range(100)])
    assert found.bytes_per_s == pytest.approx(500.0)
    assert found.error_bytes_per_s == pytest.approx(0.0, abs=1e-6)


def test_what_goes_up_and_down_is_no_growth_beyond_its_error() -> None:
    found = soak.growth([(float(n), 1e6 + 1000.0 * math.sin(n)) for n in range(600)])
    assert abs(found.bytes_per_s) < 3 * found.error_bytes_per_s


def test_two_samples_have_a_growth_but_no_error() -> None:
    found = soak.growth([(0.0, 1.0), (1.0, 3.0)])
    assert (found.bytes_per_s, math.isnan(found.error_bytes_per_s)) == (2.0, True)


def test_streams_and_short_answers_take_turns() -> None:
    assert [body["stream"] for body in soak.mixed()[:4]] == [False, True, False, True]
