"""Load from wrk, with a program in its place that reports what it is told to."""

from pathlib import Path

import pytest

from modelserve import errors
from servelab.bench import wrk

SCRIPT = """#!/bin/sh
echo "Running 1s test"
echo
echo '{}'
exit {}
"""


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program's place, first on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "wrk"


def write(program: Path, report: str, code: int = 0) -> None:
    program.write_text(SCRIPT.format(report, code))
    program.chmod(0o755)


def test_answers_a_second_are_of_the_time_it_took(pretend: Path) -> None:
    write(pretend, '{"requests": 30, "duration_us": 1500000, "failed": 0, "late": 0}')
    found = wrk.load(1, wrk.chats([4], stream=False), 8, 1.0)
    assert (found.requests, found.per_s) == (30, 20.0)


def test_a_figure_from_failed_requests_is_none(pretend: Path) -> None:
    write(pretend, '{"requests": 30, "duration_us": 1500000, "failed": 2, "late": 1}')
    with pytest.raises(errors.ModelServeError, match="2 failed and 1 took more than 30 s"):
        wrk.load(1, wrk.chats([4], stream=False), 8, 1.0)


def test_a_run_that_fails_says_why(pretend: Path) -> None:
    write(pretend, "unable to connect", code=1)
    with pytest.raises(errors.SetUpError, match="unable to connect"):
        wrk.load(1, wrk.chats([4], stream=False), 8, 1.0)


def test_without_the_program_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.SetUpError, match="install the package wrk"):
        wrk.check()


def test_requests_in_a_row_differ() -> None:
    asked = [str(body["messages"]) for body in wrk.chats([4, 5], stream=True)]
    assert len(set(asked)) == len(asked)


def test_requests_ask_for_each_length_in_turn() -> None:
    asked = wrk.chats([4, 5, 6], stream=True, prompts=4)
    assert [body["max_tokens"] for body in asked] == [4, 5, 6, 4]
