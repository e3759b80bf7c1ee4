"""``servelab scheduler-check``: its exit codes and what it says."""

import json
from pathlib import Path

import pytest
from click import testing

from servelab import cli

RECORDINGS = Path(__file__).parents[1] / "engine" / "checks" / "recordings"
RECORDING = RECORDINGS / "vllm-0.33.0-scheduler.json"


def check(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["scheduler-check", *arguments])


def test_an_equal_recording_exits_with_0() -> None:
    result = check(str(RECORDING), "--json")
    verdict = json.loads(result.stdout)
    assert result.exit_code == 0
    assert verdict["cases"] == 6
    assert verdict["steps"] == verdict["equal"] > 300
    assert verdict["first_differences"] == []


def test_a_difference_exits_with_1_and_is_told(tmp_path: Path) -> None:
    cases = json.loads(RECORDING.read_text())
    cases[0]["steps"][2]["waiting"] += 1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(cases))
    told = json.loads(check(str(changed), "--json").stdout)["first_differences"]
    assert [sorted(each) for each in told] == [["case", "ours", "real", "step"]]
    result = check(str(changed))
    assert result.exit_code == 1
    assert f"{cases[0]['name']}, step 2: real {{'waiting'" in result.output


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}", "[1]", '[{"name": "x"}]', "\x00"),
        '[{"name":"x","config":{"max_num_seqs":1,"max_num_batched_tokens":1,"max_model_len":8,'
        '"num_gpu_blocks":9},"requests":[{"id":"a","step":0,"prompt":[[1,8]],"max_tokens":1}],'
        '"steps":[{"step":0}]}]',
    ],
)
def test_what_is_no_recording_exits_with_2_and_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    result = check(str(file))
    assert result.exit_code == 2
    assert "bad.json" in result.output
    assert "Traceback" not in result.output


def test_a_missing_file_exits_with_2() -> None:
    assert check("/nowhere/at/all.json").exit_code == 2
