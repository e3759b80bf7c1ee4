"""Outcomes side by side, turned where a terminal is narrow."""

import dataclasses

from servelab.cli import outcomes
from servelab.report import paper
from servelab.sim import outcome


def of(policy: str) -> outcome.Outcome:
    fields = {f.name: 1.0 for f in dataclasses.fields(outcome.Outcome)}
    return outcome.Outcome(**{**fields, "policy": policy})  # type: ignore[arg-type]


def test_on_a_wide_terminal_and_on_a_pipe_each_policy_has_a_row() -> None:
    for room in (None, 200):
        assert outcomes.grid([of("hpa"), of("keda")], room).row_count == 2


def test_on_a_narrow_terminal_each_policy_has_a_column() -> None:
    shown = outcomes.grid([of("hpa"), of("keda")], 80)
    assert [column.header for column in shown.columns] == ["policy", "hpa", "keda"]
    assert paper.columns_of(shown) <= 80


def test_what_fits_in_no_way_stays_as_it_is() -> None:
    assert outcomes.grid([of(f"fixed-{n}") for n in range(12)], 80).row_count == 12
