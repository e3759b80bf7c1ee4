"""Results are files that are whole or not there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors
from servelab.sweep import results

ROWS: list[Mapping[str, Any]] = [
    {"minReplicas": 0, "mixed": 1, "cost": None, "policy": "committed"},
    {"minReplicas": 1, "mixed": "a, b", "cost": 1.5, "policy": "hpa"},
]


def test_csv_has_a_column_for_each_figure(tmp_path: Path) -> None:
    results.write(tmp_path / "a.csv", ROWS)
    assert (tmp_path / "a.csv").read_text() == (
        'minReplicas,mixed,cost,policy\n0,1,,committed\n1,"a, b",1.5,hpa\n'
    )


def test_parquet_has_typed_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    results.write(tmp_path / "a.parquet", ROWS)
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist() == [
        {"minReplicas": 0, "mixed": "1", "cost": None, "policy": "committed"},
        {"minReplicas": 1, "mixed": "a, b", "cost": 1.5, "policy": "hpa"},
    ]


def test_what_was_there_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    results.replace(path, b"new")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["new"]


def test_where_it_cannot_be_put_nothing_half_written_stays(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(errors.SetUpError, match="cannot be written"):
        results.replace(tmp_path / "a.csv", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("a.txt", ".csv or .parquet"), ("no/a.csv", "no directory"), ("d.csv", "is a directory")],
)
def test_a_place_that_will_not_do_is_told_before_anything_runs(
    tmp_path: Path, name: str, complaint: str
) -> None:
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(errors.InputError, match=complaint):
        results.check(tmp_path / name)


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(errors.InputError, match="no ordinary file"):
        results.check(tmp_path / "pipe.csv")
