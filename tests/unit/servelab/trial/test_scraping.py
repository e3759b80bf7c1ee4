"""Numbers are read out of the text format by name."""

import math

import pytest

from servelab.trial import scraping

TEXT = """# HELP a_seconds Something.
a_seconds_bucket{le="0.01"} 1.0
a_seconds_count 2.0
a_seconds_sum 0.05
b_total{code="200"} 3.0
b_total{code="404"} 1.0
c_seconds_count 0.0
c_seconds_sum 0.0
"""


@pytest.mark.parametrize(("name", "value"), [("a_seconds_count", 2.0), ("b_total", 4.0)])
def test_a_metric_is_summed_over_its_labels(name: str, value: float) -> None:
    assert scraping.total(TEXT, name) == value


def test_a_mean_is_sum_over_count() -> None:
    assert scraping.mean(TEXT, "a_seconds") == pytest.approx(0.025)


@pytest.mark.parametrize("histogram", ["c_seconds", "d_seconds"])
def test_a_mean_of_nothing_is_nan(histogram: str) -> None:
    assert math.isnan(scraping.mean(TEXT, histogram))


async def test_nobody_there_is_an_empty_text() -> None:
    assert await scraping.read("http://127.0.0.1:9/metrics") == ""
