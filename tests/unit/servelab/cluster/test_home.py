"""One cluster a directory, and nothing left in it."""

import os
from pathlib import Path

import pytest

from modelserve import errors
from servelab.cluster import home, record

NOBODY = record.Process(pid=2**22 + 1, started_at="long ago")


def at(directory: Path, *, keep: bool = False) -> home.Home:
    return home.Home("test", directory, keep=keep)


def written_by(process: record.Process) -> record.Record:
    return record.Record("test", process, {}, "/kubeconfig", {}, 1.0, "v1", keep=False, ready=True)


def test_a_closed_home_is_gone(tmp_path: Path) -> None:
    one = at(tmp_path / "a")
    one.open()
    one.close()
    assert list(tmp_path.iterdir()) == []


def test_a_kept_home_keeps_its_data_and_no_credentials(tmp_path: Path) -> None:
    one = at(tmp_path, keep=True)
    one.open()
    (one.run / "admin.key").touch()
    (one.logs / "etcd.log").touch()
    one.close()
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "emulator"}


def test_a_home_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    one = at(tmp_path / "a")
    one.open()
    assert [p for p in (one.directory, one.run) if p.stat().st_mode & 0o077] == []
    one.close()


def test_two_clusters_cannot_share_a_home(tmp_path: Path) -> None:
    one = at(tmp_path / "a")
    one.open()
    with pytest.raises(errors.SetUpError, match=r"already runs in .*servelab down"):
        at(tmp_path / "a").open()
    one.close()
    at(tmp_path / "a").open()


def test_a_second_one_is_told_how_to_stop_the_first(tmp_path: Path) -> None:
    one = at(tmp_path / "a")
    one.open()
    with pytest.raises(errors.SetUpError, match=rf"`servelab down --name {one.name}`"):
        at(tmp_path / "a").open()
    one.close()


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.SetUpError, match=r"file/a cannot be written .*--data-dir"):
        at(tmp_path / "file" / "a").open()


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    one = home.Home("test", tmp_path / "a", keep=False, least_free_bytes=2**62)
    with pytest.raises(errors.SetUpError, match=r"disk space left.*--data-dir"):
        one.open()
    assert not (tmp_path / "a").exists()


def test_closing_a_home_that_is_somebody_elses_does_nothing(tmp_path: Path) -> None:
    one = at(tmp_path / "a")
    one.open()
    at(tmp_path / "a").close()
    assert one.run.exists()
    one.close()


def test_a_crashed_cluster_is_cleared(tmp_path: Path) -> None:
    one = at(tmp_path / "a")
    one.open()
    one.close()
    (tmp_path / "a").mkdir()
    written_by(NOBODY).write(tmp_path / "a")
    assert one.open()
    assert record.read(tmp_path / "a") is None
    one.close()


def test_foreign_files_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(errors.SetUpError, match=r"thesis\.tex"):
        at(tmp_path).open()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_cannot_be_a_home(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(errors.SetUpError, match="is a file"):
        at(tmp_path / "a").open()


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    wrote = written_by(record.Process.of(os.getpid()))
    wrote.write(tmp_path)
    assert record.read(tmp_path) == wrote
    assert wrote.alive()


def test_a_process_id_that_is_used_again_is_another_process() -> None:
    assert not record.Process(os.getpid(), "long ago").alive()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 1}'])
def test_a_broken_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / record.FILE).write_text(text)
    assert record.read(tmp_path) is None
