"""Expositions against lists of families."""

from pathlib import Path

from servelab.engine.checks import exposition
from servelab.engine.checks.exposition import Family

TEXT = """\
# HELP a_s x
# TYPE a_s histogram
a_s_bucket{method="m",le="0.5"} 1
a_s_bucket{method="m",le="1"} 1
a_s_bucket{method="m",le="+Inf"} 1
a_s_sum{method="m"} 0.1
a_s_count{method="m"} 1
# TYPE b gauge
b 2
"""


def test_families_are_read_with_labels_and_bounds() -> None:
    assert exposition.exported(TEXT) == [
        Family("a_s", "histogram", ("method",), (0.5, 1.0)),
        Family("b", "gauge"),
    ]


def test_a_list_may_write_bounds_as_a_rule(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# source\na_s histogram labels=method buckets=geometric(0.5,2,2)\nb gauge\n")
    assert exposition.differences(exposition.listed(path), exposition.exported(TEXT)) == []


def test_every_difference_is_told() -> None:
    real = [Family("a_s", "histogram", (), (0.5,)), Family("c", "gauge")]
    assert exposition.differences(real, exposition.exported(TEXT)) == [
        "a_s has bounds (0.5, 1.0), not (0.5,)",
        "a_s has labels ('method',), not ()",
        "b is no metric of the real engine",
        "c is missing",
    ]
