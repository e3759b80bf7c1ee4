"""Temporary directories go with their owner, or when the next one comes."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from servelab.cluster import scratch

OWNER = """
    import sys
    from pathlib import Path
    from servelab.cluster import scratch

    with scratch.directory("work", Path(sys.argv[1])) as made:
        (made / "part").mkdir()
        (made / "part" / "file").write_text("much")
        print(made, flush=True)
        sys.stdin.read()
"""


def owner(place: Path) -> tuple["subprocess.Popen[str]", Path]:
    """A process that works in a directory of its own until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(OWNER), str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def left(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_a_directory_is_the_owners_alone_and_goes_with_the_block(tmp_path: Path) -> None:
    with scratch.directory("work", tmp_path) as made:
        (made / "file").write_text("x")
        assert left(tmp_path) == [made.name]
        assert made.name.startswith("work.")
        assert made.stat().st_mode & 0o777 == 0o700
    assert left(tmp_path) == []


def test_it_goes_if_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError), scratch.directory("work", tmp_path):
        raise KeyError
    assert left(tmp_path) == []


def test_what_a_killed_owner_left_goes_when_the_next_one_comes(tmp_path: Path) -> None:
    process, theirs = owner(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (theirs / "part" / "file").exists()
    with scratch.directory("work", tmp_path) as made:
        assert left(tmp_path) == [made.name]


def test_that_of_a_live_owner_stays(tmp_path: Path) -> None:
    process, theirs = owner(tmp_path)
    with scratch.directory("work", tmp_path):
        assert (theirs / "part" / "file").exists()
    process.communicate()
    assert (process.returncode, left(tmp_path)) == (0, [])


@pytest.mark.parametrize("name", ["working.abc", "other.abc", ".work.abc", "work"])
def test_other_directories_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    scratch.sweep("work", tmp_path)
    assert left(tmp_path) == [name]


def test_files_and_links_of_such_a_name_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "work.file").write_text("x")
    (tmp_path / "work.link").symlink_to(tmp_path / "target")
    scratch.sweep("work", tmp_path)
    assert left(tmp_path) == ["target", "work.file", "work.link"]


def test_where_temporary_files_lie_is_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch.directory("work") as made:
        assert made.parent == tmp_path
        assert os.access(made, os.W_OK)
