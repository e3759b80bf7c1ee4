"""``servelab sweep``: any field, resumed after any end, to the same bytes."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from servelab.cli import main

SCENARIO = """\
pools: [{gpu: NVIDIA-H100-80GB-HBM3}]
models:
  - name: small
    spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
    traffic:
      - gamma: {perSecond: 2, cv: 3, seconds: 60}
        output: {median: 100, p95: 400}
tailSeconds: 200
gpuHourPrice: 2
"""
FIELDS = ("--set", "scaling.minReplicas=0,1,2", "--set", "scaling.bufferReplicas=0,1")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("sweep", *arguments))


def begun(scenario: str, out: Path) -> "subprocess.Popen[bytes]":
    """A sweep in a process of its own that has done two points and more to do."""
    words = ("sweep", scenario, *FIELDS, "--seeds", "3", "--out", str(out))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "servelab", *words], stderr=subprocess.PIPE
    )
    journal = out.with_name(f"{out.name}.journal")
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert process.poll() is None, process.communicate()
        os.sched_yield()
    return process


def test_a_sweep_killed_in_the_middle_resumes_to_the_identical_file(
    scenario: str, tmp_path: Path
) -> None:
    killed, whole = tmp_path / "killed.csv", tmp_path / "whole.csv"
    with begun(scenario, killed) as process:
        process.kill()
        process.communicate()
    assert not killed.exists()
    words = (scenario, *FIELDS, "--seeds", "3", "--workers", "1")
    assert call(*words, "--out", str(whole)).exit_code == 0
    assert "--resume" in call(*words, "--out", str(killed)).output
    done = call(*words, "--out", str(killed), "--resume")
    assert done.exit_code == 0, done.output
    assert killed.read_bytes() == whole.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "killed.csv",
        "small.yaml",
        "whole.csv",
    ]


def test_ctrl_c_ends_with_130_and_leaves_a_journal_only(scenario: str, tmp_path: Path) -> None:
    with begun(scenario, tmp_path / "out.csv") as process:
        process.send_signal(signal.SIGINT)
        _, log = process.communicate()
    assert (process.returncode, b"Traceback" in log) == (130, False)
    assert b"go on with --resume" in log
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.csv.journal", "small.yaml"]


def test_a_file_holds_the_fields_and_the_figures_of_compare(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    call(scenario, "--set", "models.small.traffic.0.gamma.cv=1,3", "--out", str(out))
    with out.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["models.small.traffic.0.gamma.cv"] for row in rows] == ["1", "3"]
    compared = CliRunner().invoke(main, ("compare", scenario, "--policies=committed", "--json"))
    figures = json.loads(compared.stdout)
    names = [name for name in figures if name != "scenario"]
    assert list(rows[0]) == ["models.small.traffic.0.gamma.cv", *names]
    assert rows[1]["gpu_hours"] == str(figures["gpu_hours"])


def test_rows_are_the_same_on_one_process_and_on_two(scenario: str, tmp_path: Path) -> None:
    written = []
    for workers in ("1", "2"):
        out = tmp_path / f"{workers}.csv"
        assert call(scenario, *FIELDS, "--workers", workers, "--out", str(out)).exit_code == 0
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert len(written[0].splitlines()) == 1 + 3 * 2


def test_json_tells_the_front(scenario: str) -> None:
    done = call(scenario, *FIELDS, "--workers", "1", "-o", "json")
    found = json.loads(done.stdout)
    assert (found["runs"], found["combinations"]) == (6, 6)
    costs = [each["cost"] for each in found["front"]]
    waits_s = [each["ttft_p95_s"] for each in found["front"]]
    assert costs == sorted(costs)
    assert waits_s == sorted(waits_s, reverse=True)


def test_people_get_the_front_as_a_table(scenario: str) -> None:
    said = call(scenario, *FIELDS, "--workers", "1", "--policies", "committed,hpa").output
    assert "scaling.minReplicas" in said
    assert "TTFT p95" in said


def test_files_are_the_same_whatever_the_hash_seed(scenario: str, tmp_path: Path) -> None:
    for seed in "12":
        out = str(tmp_path / f"{seed}.csv")
        words = ("sweep", scenario, *FIELDS[:2], "--workers", "1", "--out", out)
        subprocess.run(
            [sys.executable, "-m", "servelab", *words],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param(["--resume"], "name it with --out", id="resume without a file"),
        pytest.param(["--out", "x.txt"], ".csv or .parquet", id="format"),
        pytest.param(["--out", "nowhere/x.csv"], "is no directory", id="folder"),
        pytest.param(["--set", "scaling.maxReplicas=0"], "with --set scaling.max", id="value"),
        pytest.param(["--policies", "hap"], "no policy is called 'hap'", id="policy"),
        pytest.param(
            ["--set", "models.0.traffic=[{trace: no.csv}]"], "no.csv, which cannot", id="trace"
        ),
    ],
)
def test_what_cannot_be_swept_is_told_before_anything_runs(
    scenario: str, words: list[str], complaint: str
) -> None:
    done = call(scenario, *words)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.split())


def test_a_client_that_is_not_there_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    generated = "gamma: {perSecond: 2, cv: 3, seconds: 60}"
    path.write_text(SCENARIO.replace(generated, "serveGen: {client: m-mid/92, seconds: 9}"))
    done = call(str(path), "--set", "scaling.maxReplicas=1,2")
    assert done.exit_code == 2
    assert "other.yaml, line 8: models.0.traffic.0.serveGen.client: in" in done.output
    assert "did you mean m-mid/29?" in done.output


def test_a_bad_row_of_a_trace_is_told_with_its_line(scenario: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival_s,input_tokens,output_tokens\n1,1,1\n0,1,1\n")
    done = call(
        scenario, "--set", "models.0.traffic=[{trace: t.csv}]", "--out", str(tmp_path / "o.csv")
    )
    assert done.exit_code == 2
    assert "t.csv, line 3: goes back in time" in " ".join(done.output.split())
    assert not (tmp_path / "o.csv").exists()
