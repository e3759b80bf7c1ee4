"""A journal keeps what is done through any end of the process, and never takes what is not its."""

from pathlib import Path

import pytest

from modelserve import errors
from servelab.sweep import journal


def written(path: Path) -> Path:
    with journal.Journal(path, resume=False) as kept:
        kept.add("one", {"cost": 1})
        kept.add("two", {"cost": 2})
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.csv.journal"


def test_what_was_done_is_there_again(path: Path) -> None:
    with journal.Journal(written(path), resume=True) as kept:
        assert kept.done == {"one": {"cost": 1}, "two": {"cost": 2}}


@pytest.mark.parametrize("cut_bytes", [1, 5, 20])
def test_a_line_that_was_cut_short_is_forgotten(path: Path, cut_bytes: int) -> None:
    content = written(path).read_bytes()
    path.write_bytes(content[:-cut_bytes])
    with journal.Journal(path, resume=True) as kept:
        assert set(kept.done) == {"one"}
        kept.add("two", {"cost": 2})
    assert path.read_bytes() == content


@pytest.mark.parametrize("length", [0, 1, 10])
def test_one_cut_in_its_first_line_begins_anew(path: Path, length: int) -> None:
    path.write_bytes(written(path).read_bytes()[:length])
    with journal.Journal(path, resume=False) as kept:
        assert kept.done == {}


def test_an_unfinished_sweep_is_not_begun_anew_by_accident(path: Path) -> None:
    with pytest.raises(errors.InputError, match=r"2 finished points .* --resume"):
        journal.Journal(written(path), resume=False)


@pytest.mark.parametrize("content", [b"my notes\n", b"my notes", b'{"a": 1}\n'])
def test_what_is_no_journal_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(errors.InputError, match="journal"):
        journal.Journal(path, resume=True)
    assert path.read_bytes() == content


def test_a_line_that_is_no_point_is_named(path: Path) -> None:
    path.write_bytes(written(path).read_bytes() + b"[]\n")
    with pytest.raises(errors.InputError, match="line 4"):
        journal.Journal(path, resume=True)


def test_two_sweeps_do_not_write_one_journal(path: Path) -> None:
    with (
        journal.Journal(path, resume=False),
        pytest.raises(errors.SetUpError, match="another sweep"),
    ):
        journal.Journal(path, resume=True)


def test_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="cannot be written"):
        journal.Journal(tmp_path / "no" / "x.journal", resume=False)
