"""Reading /metrics."""

import math

import pytest

from servelab.bench import exposition

TEXT = """\
# HELP requests_total All.
requests_total{code="200",verb="PATCH"} 3
requests_total{code="409",verb="PATCH"} 1
requests_total{code="200",verb="GET"} 10
requests_total_sum 99
late_seconds_bucket{le="0.01"} 50.0
late_seconds_bucket{le="0.1"} 100.0
late_seconds_bucket{le="+Inf"} 100.0
"""


def test_series_with_the_labels_are_summed() -> None:
    assert exposition.total(TEXT, "requests_total", {"verb": "PATCH"}) == 4
    assert exposition.total(TEXT, "requests_total") == 14


def test_a_quantile_lies_within_its_bucket() -> None:
    found = exposition.buckets(TEXT, "late_seconds")
    assert exposition.quantile(found, 0.5) == pytest.approx(0.01)
    assert exposition.quantile(found, 0.75) == pytest.approx(0.055)


def test_only_what_came_between_counts() -> None:
    before = {0.01: 50.0, 0.1: 50.0, math.inf: 50.0}
    found = exposition.between(before, exposition.buckets(TEXT, "late_seconds"))
    assert found == {0.01: 0.0, 0.1: 50.0, math.inf: 50.0}


def test_nothing_has_no_quantile() -> None:
    assert math.isnan(exposition.quantile({math.inf: 0.0}, 0.99))
