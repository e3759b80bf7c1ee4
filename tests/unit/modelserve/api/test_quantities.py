"""Sizes and rates."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from modelserve.api import quantities


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        pytest.param("9GB", 9_000_000_000, id="decimal"),
        pytest.param("256MiB", 256 * 2**20, id="binary"),
        pytest.param("1Ti", 2**40, id="kubernetes binary"),
        pytest.param("1.5 kB", 1500, id="fraction and blank"),
        pytest.param("17", 17, id="bare bytes"),
    ],
)
def test_sizes_are_read_as_bytes(text: str, n_bytes: int) -> None:
    assert quantities.parse_bytes(text) == n_bytes


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 Q", "1GB/s", "1e9"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(errors.QuantityError, match="for instance 9GB"):
        quantities.parse_bytes(text)


@pytest.mark.parametrize("text", ["2GB", "fast", "2GB/h", "0GB/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(errors.QuantityError, match="rate"):
        quantities.parse_rate(text)


@given(st.floats(min_value=1, max_value=1e14))
def test_a_written_rate_is_read_back(rate: float) -> None:
    text = quantities.format_rate(rate)
    assert math.isclose(quantities.parse_rate(text), rate, rel_tol=1e-5, abs_tol=0.5)


@pytest.mark.parametrize(("n_bytes", "text"), [(16_060_522_496, "16.1 GB"), (12, "12 B")])
def test_sizes_are_written_for_people(n_bytes: int, text: str) -> None:
    assert quantities.format_bytes(n_bytes) == text
