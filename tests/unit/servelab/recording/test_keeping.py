"""What a run has recorded stays, whatever becomes of the rest."""

import json
from pathlib import Path

from servelab.recording import keeping


def test_the_file_holds_what_is_finished_in_the_order_of_the_cases(tmp_path: Path) -> None:
    kept = keeping.Kept(tmp_path / "out.json", ["a", "b", "c"])
    kept.add("c", {"scenario": "c"})
    kept.add("a", {"scenario": "a"})
    assert [each["scenario"] for each in json.loads(kept.path.read_text())] == ["a", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_what_is_missing_is_told_by_name(tmp_path: Path) -> None:
    kept = keeping.Kept(tmp_path / "out.json", ["a", "b", "c"])
    kept.add("b", {})
    assert kept.missing == ["a", "c"]
    assert kept.told() == f"wrote 1 recordings to {kept.path}; missing: a c"


def test_nothing_recorded_leaves_what_was_there(tmp_path: Path) -> None:
    kept = keeping.Kept(tmp_path / "out.json", ["a"])
    kept.path.write_text("mine")
    assert kept.told() == "nothing was recorded; missing: a"
    assert kept.path.read_text() == "mine"
