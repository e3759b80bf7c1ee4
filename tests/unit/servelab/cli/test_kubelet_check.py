"""``servelab kubelet-check``: what it says of bad input; the check itself needs a cluster."""

from pathlib import Path

import pytest
from click import testing

from servelab import cli

FILE = Path(__file__).parents[1] / "node" / "checks" / "recordings" / "kubelet-1.37.2.json"


def check(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["kubelet-check", *arguments])


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", '[{"scenario": "x"}]', "\x00", "[" * 3000])
def test_what_is_no_recording_exits_with_2_and_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    result = check(str(file))
    assert result.exit_code == 2
    assert "bad.json is no recording" in result.output
    assert "Traceback" not in result.output


def test_a_missing_file_exits_with_2() -> None:
    result = check("/nowhere/at/all.json")
    assert result.exit_code == 2
    assert "/nowhere/at/all.json cannot be read: No such file or directory" in result.output


def test_an_unknown_scenario_is_told_with_those_there_are() -> None:
    result = check(str(FILE), "--only", "nothing")
    assert result.exit_code == 2
    assert "has no scenario 'nothing'; it has command-missing, crash-loop" in result.output
