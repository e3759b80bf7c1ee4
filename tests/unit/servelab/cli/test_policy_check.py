"""``servelab policy-check``: its exit codes and what it says."""

import json
from pathlib import Path

import pytest
from click import testing

from servelab import cli

RECORDINGS = Path(__file__).parents[1] / "policies" / "recordings"
RECORDING = RECORDINGS / "kubernetes-1.37.2-hpa.json"


def check(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["policy-check", *arguments])


@pytest.mark.parametrize("name", ["kubernetes-1.37.2-hpa.json", "knative-0.51.0-kpa.json"])
def test_an_equal_recording_exits_with_0(name: str) -> None:
    result = check(str(RECORDINGS / name), "--json")
    verdict = json.loads(result.stdout)
    assert result.exit_code == 0
    assert sorted(verdict) == ["cases", "equal", "first_differences", "ticks"]
    assert verdict["ticks"] == verdict["equal"] > 300
    assert verdict["first_differences"] == []


def test_a_difference_exits_with_1_and_is_told(tmp_path: Path) -> None:
    cases = json.loads(RECORDING.read_text())
    cases[0]["syncs"][2]["desired"] += 1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(cases))
    told = json.loads(check(str(changed), "--json").stdout)["first_differences"]
    assert [sorted(each) for each in told] == [["case", "ours", "real", "t"]]
    result = check(str(changed))
    assert result.exit_code == 1
    assert "pulse-100/v4, at 30 s: real {'desired': 7}, ours {'desired': 6}" in result.output


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[]", "[1]", '[{"name": "x"}]', "\x00", "[" * 3000]
)
def test_what_is_no_recording_exits_with_2_and_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    result = check(str(file))
    assert result.exit_code == 2
    assert "bad.json is no recording" in result.output
    assert "Traceback" not in result.output


def test_a_missing_file_exits_with_2() -> None:
    assert check("/nowhere/at/all.json").exit_code == 2
