"""Outcomes side by side, turned where a terminal is narrow."""

import dataclasses

from servelab.cli import outcomes
from servelab.report import paper
from servelab.sim import outcome, scenario


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


def test_what_a_request_is_promised_stands_in_a_sentence() -> None:
    said = outcomes.promise(scenario.Objective(ttft_seconds=2.5))
    assert "a first token within 2.5 s (the scenario's objective)" in said
    both = outcomes.promise(scenario.Objective(ttft_seconds=2.5, tpot_seconds=0.05))
    assert "within 2.5 s and then a token every 0.05 s or sooner" in both
