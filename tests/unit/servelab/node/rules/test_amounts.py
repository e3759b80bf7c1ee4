"""Quantities as exact numbers."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.node.rules import amounts


@pytest.mark.parametrize(
    ("text", "number"),
    [("100m", "0.1"), ("2", "2"), ("64Mi", "67108864"), ("1k", "1000"), ("1e3", "1000")],
)
def test_quantities_are_read(text: str, number: str) -> None:
    assert amounts.parse(text) == Decimal(number)


@pytest.mark.parametrize(
    ("number", "like", "text"),
    [
        ("1.05", "950m", "1050m"),
        ("2", "1", "2"),
        ("134217728", "64Mi", "128Mi"),
        ("1073741824", "512Mi", "1Gi"),
        ("1000", "1", "1k"),
        ("0", "1", "0"),
    ],
)
def test_they_are_written_as_the_api_server_does(number: str, like: str, text: str) -> None:
    assert amounts.write(Decimal(number), like) == text


@given(st.integers(1, 10**15), st.sampled_from(["1", "1Mi"]))
def test_what_is_written_is_read_back(number: int, like: str) -> None:
    assert amounts.parse(amounts.write(Decimal(number), like)) == number
