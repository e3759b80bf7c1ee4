"""The rules of promtool, one text each with what promtool 3.16 says of it."""

import pytest

from servelab.engine.checks import lint


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("# HELP a_total x\n# TYPE a_total counter\na_total 1\n", []),
        ("# TYPE a counter\na 1\n",
         ['a counter metrics should have "_total" suffix', "a no help text"]),
        ("# HELP a_total x\n# TYPE a_total gauge\na_total 1\n",
         ['a_total non-counter metrics should not have "_total" suffix']),
        ("# HELP a:b x\n# TYPE a:b gauge\na:b 1\n", ["a:b metric names should not contain ':'"]),
        ("# HELP a_us x\n# TYPE a_us gauge\na_us 1\n",
         ["a_us metric names should not contain abbreviated units"]),
        ("# HELP a_milliseconds x\n# TYPE a_milliseconds gauge\na_milliseconds 1\n",
         ['a_milliseconds use base unit "seconds" instead of "milliseconds"']),
        ("# HELP a_gauge x\n# TYPE a_gauge gauge\na_gauge 1\n",
         ["a_gauge metric name should not include type 'gauge'"]),
        ('# HELP a x\n# TYPE a gauge\na{someLabel="1"} 1\n',
         ["a label names should be written in 'snake_case' not 'camelCase'"]),
    ],
)  # fmt: skip
def test_faults_are_told_in_promtools_words(text: str, faults: list[str]) -> None:
    assert lint.problems(text) == faults


def test_a_family_without_series_is_not_looked_at() -> None:
    assert lint.problems("# TYPE a counter\n") == []
