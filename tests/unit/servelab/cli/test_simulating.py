"""``servelab simulate`` and ``compare``: equal input gives equal bytes, mistakes give sentences."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from servelab.cli import main

SCENARIO = """\
pools: [{gpu: NVIDIA-H100-80GB-HBM3}]
models:
  - spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
    traffic:
      - gamma: {perSecond: 2, cv: 3, seconds: 120}
        output: {median: 100, p95: 400}
      - serveGen: {client: m-mid/29, fromSeconds: 824400, seconds: 60, scale: 0.1}
tailSeconds: 400
"""
# What docs and scripts rely on.
NAMES = {
    *("policy", "peak_replicas", "gpu_hours", "idle_gpu_hours", "cold_starts", "ttft_p50_s"),
    *("ttft_p95_s", "ttft_p99_s", "held_p95_s", "slo_attainment", "scale_writes", "refused"),
    "cost",
}


EXAMPLES = Path(__file__).parents[4] / "examples/simulate"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["simulate", "small.yaml"], id="simulate"),
        pytest.param(["compare", "small.yaml", "--policies=committed,knative"], id="compare"),
        pytest.param(["simulate", str(EXAMPLES / "spot.yaml")], id="faults and elastic pools"),
    ],
)
def test_equal_input_gives_equal_bytes_whatever_the_hash_seed(
    scenario: str, command: list[str]
) -> None:
    said = [
        subprocess.run(
            [sys.executable, "-m", "servelab", *command, "--json"],
            cwd=Path(scenario).parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0]


def test_another_seed_gives_other_draws(scenario: str) -> None:
    one, other = (call("simulate", scenario, "--json", "--seed", seed) for seed in "12")
    assert one.stdout != other.stdout


def test_compare_prints_an_object_for_each_policy(scenario: str) -> None:
    done = call("compare", scenario, "--policies", "committed,fixed-1,oracle", "--json")
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["policy"] for each in found] == ["committed", "fixed-1", "oracle"]
    assert all(set(each) >= NAMES for each in found)
    assert len({each["requests"] for each in found}) == 1


def test_a_trace_takes_the_place_of_the_traffic(scenario: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,input_tokens,output_tokens\n0,10,5\n3,10,5\n")
    done = call("simulate", scenario, "--trace", str(trace), "--json")
    assert json.loads(done.stdout)["outcome"]["requests"] == 2


def test_a_page_holds_the_table_and_a_chart_for_each_policy(scenario: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = call("compare", scenario, "--policies", "committed,fixed-1", "--html", str(page))
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "fixed-1: ready replicas of model" in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == 4  # costs, waits, and the replicas of two policies
    for each in drawings:
        ElementTree.fromstring(each)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_people_get_a_table_and_a_chart(scenario: str) -> None:
    said = call("simulate", scenario).output
    assert "committed" in said
    assert "ready replicas" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["nowhere.yaml"], "nowhere.yaml cannot be read", id="no file"),
        pytest.param(["nowhere"], "unknown scenario 'nowhere'", id="no name"),
        pytest.param(["step", "--policy", "hap"], "no policy is called 'hap'", id="policy"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(arguments: list[str], complaint: str) -> None:
    done = call("simulate", *arguments)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.split())


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_trace_without_a_request_is_told(scenario: str, command: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,input_tokens,output_tokens\n")
    done = call(command, scenario, "--trace", str(trace))
    assert (done.exit_code, f"{trace} holds no request" in done.output) == (2, True)


def test_a_bad_row_of_a_trace_is_told_with_its_line(scenario: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,input_tokens,output_tokens\n5,10,5\n3,10,5\n")
    done = call("simulate", scenario, "--trace", str(trace))
    assert done.exit_code == 2
    assert "line 3" in done.output


def test_a_trace_that_is_not_there_is_told_with_the_line_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(re.sub(r"- gamma:(.|\n)*tail", "- trace: no.csv\ntail", SCENARIO))
    done = call("simulate", str(path))
    assert done.exit_code == 2
    assert "small.yaml, line 7: models.0.traffic.0.trace: there is no" in done.output


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ("", "t.csv lasts 10 s, too short to draw blocks of 60 s from: lower resampleSeconds"),
        (", seconds: 9", "`resampleSeconds` 60 must be less than `seconds` 9"),
    ],
)
def test_a_trace_shorter_than_a_block_of_it_is_told_with_the_line_that_says_so(
    tmp_path: Path, fields: str, told: str
) -> None:
    (tmp_path / "t.csv").write_text("arrival_s,input_tokens,output_tokens\n0,1,1\n5,1,1\n")
    path, traffic = tmp_path / "small.yaml", f"- {{trace: t.csv, resampleSeconds: 60{fields}}}"
    path.write_text(re.sub(r"- gamma:(.|\n)*tail", f"{traffic}\ntail", SCENARIO))
    done = call("simulate", str(path))
    assert done.exit_code == 2
    line = f"small.yaml, line 7: models.0.traffic.0.resampleSeconds: {told}"
    assert line in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("traffic", "told"),
    [
        pytest.param(
            "trace: .",
            "models.0.traffic.0.trace: {folder} is a directory; with the package come azure-code",
            id="directory",
        ),
        pytest.param(
            "serveGen: {client: m-mid/92, seconds: 9}",
            "models.0.traffic.0.serveGen.client: in servegen-clients: unknown client 'm-mid/92'; "
            "did you mean m-mid/29",
            id="client",
        ),
        pytest.param(
            "serveGen: {client: m-mid/29, lengths: ., seconds: 9}",
            "models.0.traffic.0.serveGen.lengths: {folder} is a directory; with the package come",
            id="table",
        ),
    ],
)
def test_traffic_from_what_is_not_there_is_told_with_line_and_names(
    tmp_path: Path, traffic: str, told: str
) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(re.sub(r"- gamma:(.|\n)*tail", f"- {traffic}\ntail", SCENARIO))
    done = call("simulate", str(path))
    assert done.exit_code == 2
    assert f"small.yaml, line 7: {told.format(folder=tmp_path)}" in done.output


def test_a_client_whose_lengths_are_given_needs_no_table_of_them(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    traffic = (
        "serveGen: {client: m-mid/29, lengths: ., seconds: 9}\n        input: 9\n        output: 9"
    )
    path.write_text(re.sub(r"- gamma:(.|\n)*tail", f"- {traffic}\ntail", SCENARIO))
    assert call("simulate", str(path)).exit_code == 0


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs a device that is full")
def test_a_full_disk_is_told_in_a_sentence(scenario: str) -> None:
    command = [sys.executable, "-m", "servelab", "simulate", scenario, "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    # A run that takes its time tells how far it is, before.
    *_, last = done.stderr.splitlines()
    assert (done.returncode, last) == (1, "Error: the disk is full: not all was written")
    assert "Traceback" not in done.stderr


def test_by_default_no_oracle_is_asked_about_a_closed_loop(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    closed = "- closed: {clients: 1, seconds: 9}\ntail"
    path.write_text(re.sub(r"- gamma:(.|\n)*tail", closed, SCENARIO))
    done = call("compare", str(path), "--json")
    assert [json.loads(line)["policy"] for line in done.stdout.splitlines()] == [
        *("committed", "hpa", "keda", "knative")
    ]
