"""What a table looks like on a pipe, and on a terminal that is too narrow for it."""

import re

import pytest
from rich import box, table

from servelab.report import paper

LONG = "meta-llama/Llama-3.1-8B-Instruct"


def wide() -> table.Table:
    shown = table.Table(*(f"column {n}" for n in range(12)), box=box.SIMPLE_HEAD)
    shown.add_row(*[LONG] * 12)
    return shown


@pytest.mark.parametrize("columns", ["40", "300"])
def test_no_cell_is_cut_or_folded_however_wide_the_table(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    paper.rows(wide())
    out = capsys.readouterr().out
    assert [line.count(LONG) for line in out.splitlines() if LONG in line] == [12]


def test_lines_end_where_their_text_ends(capsys: pytest.CaptureFixture[str]) -> None:
    paper.rows(wide())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ""
    assert [line for line in lines if re.search(r"\s$", line)] == []


def test_columns_of_a_table_are_those_of_its_longest_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    paper.rows(wide())
    # One of padding at the end is not printed.
    longest = max(len(line) for line in capsys.readouterr().out.splitlines())
    assert paper.columns_of(wide()) - longest in (0, 1, 2)


def test_without_a_standard_output_nothing_is_printed_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    paper.sheet().print("nobody reads this")
    paper.rows(wide())
    assert paper.room() is None
