"""A cluster that ended by itself says why, to the next command that looks for it."""

from pathlib import Path

import pytest
from click import testing

from servelab import cli
from servelab.cluster import directories, lastwords

WHY = "at 2026-11-30 08:51:38+00:00: kube-apiserver ended with signal SIGKILL and wrote no log"


@pytest.mark.parametrize("keep", [True, False])
def test_they_are_kept_until_they_are_forgotten(keep: bool, tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    (directory / "logs").mkdir(parents=True)
    lastwords.write(directory, WHY, keep=keep)
    assert lastwords.read(directory) == WHY
    lastwords.forget(directory)
    assert lastwords.read(directory) == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_they_outlive_a_directory_that_is_not_to_be_kept(tmp_path: Path) -> None:
    lastwords.write(tmp_path / "gone", WHY, keep=False)
    assert lastwords.read(tmp_path / "gone") == WHY


def test_where_nothing_can_be_written_there_are_none(tmp_path: Path) -> None:
    lastwords.write(tmp_path / "no" / "such", WHY, keep=False)
    assert lastwords.read(tmp_path / "no" / "such") == ""


def test_status_tells_them_and_down_clears_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(directories.STATE_VARIABLE, str(tmp_path))
    directories.private(directories.state("default").parent)
    lastwords.write(directories.state("default"), WHY, keep=False)
    run = testing.CliRunner().invoke
    assert "SIGKILL" in run(cli.main, ["status"]).output
    assert "SIGKILL" in run(cli.main, ["down"]).output
    assert "SIGKILL" not in run(cli.main, ["status"]).output
