"""Bad input to ``servelab bench`` and ``servelab demo``: a sentence and exit code 2."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from servelab.cli import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["bench"], "name one", id="no name"),
        pytest.param(["bench", "wakee"], "there is no bench 'wakee'", id="unknown"),
        pytest.param(["bench", "wake", "--samples", "0"], "0 is not in the range", id="samples"),
        pytest.param(["bench", "wake", "--minutes", "2"], "the bench `nodes` alone", id="minutes"),
        pytest.param(
            ["bench", "wake", "--soak", "2"], "the bench `engine` and `nodes` alone", id="soak"
        ),
        pytest.param(["emulator", "--shard", "A b"], "cannot be part of a Lease", id="shard"),
        pytest.param(["demo", "--time-scale", "0"], "not in the range", id="scale"),
        pytest.param(["demo", "--minutes", "99"], "not in the range", id="long demo"),
        pytest.param(["demo", "--fast"], "No such option", id="option"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments: list[str], told: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, told in done.output) == (2, True), done.output


def test_an_unknown_bench_gets_the_list() -> None:
    assert "wake      from zero" in CliRunner().invoke(main, ["bench", "x"]).output


def test_a_page_in_no_directory_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = str(tmp_path / "no" / "page.md")
    done = CliRunner().invoke(main, ["bench", "wake", "--write", path])
    assert (done.exit_code, "is no directory" in done.output) == (2, True)
