"""``servelab advise``: a section to use, or a sentence on what was found instead."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from modelserve.api import spec
from servelab.cli import main

SCENARIO = """\
pools: [{gpu: NVIDIA-H100-80GB-HBM3, gpusPerNode: 4}]
models:
  - spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
      coldStart: {imageSize: 1MB, warmUpSeconds: 5}
      scaling: {maxReplicas: 2, tolerance: 0.2}
tailSeconds: 60
stepJitter: 0
gpuHourPrice: 2
"""

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    rows = [f"{number * 20},100,10" for number in range(12)]
    trace = tmp_path / "trace.csv"
    trace.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]) + "\n")
    (tmp_path / "small.yaml").write_text(SCENARIO)
    return [str(trace), "--scenario", str(tmp_path / "small.yaml"), "--workers", "1"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("advise", *arguments))


def test_the_section_can_be_used_as_it_is(words: list[str]) -> None:
    done = call(*words, "--ttft-p95", "500ms")
    assert done.exit_code == 0, done.output
    begin = done.output.index("scaling:")
    section = yaml.safe_load(done.output[begin:].partition("\n  ─")[0].partition("      ")[0])
    found = spec.Scaling.model_validate(section["scaling"], extra="forbid")
    assert (found.max_replicas, found.tolerance) == (2, 0.2)
    assert "runner-up" in done.output


def test_a_field_that_is_told_and_one_left_out_are_no_difference_if_they_mean_the_same(
    words: list[str],
) -> None:
    done = call(*words, "--ttft-p95", "500ms")
    advised = yaml.safe_load(
        done.output[done.output.index("scaling:") :].partition("\n  ─")[0].partition("      ")[0]
    )["scaling"]
    same = [name for name in ("minReplicas", "bufferReplicas") if advised.get(name, 0) == 0]
    assert same
    assert not [name for name in same if f"{name} default" in done.output]


def test_equal_input_gives_equal_bytes(words: list[str]) -> None:
    said = [call(*words, "--ttft-p95", "0.5", "-o", "json").stdout for _ in range(2)]
    assert said[0] == said[1]
    found = json.loads(said[0])
    assert found["complete"] is True
    assert found["advised"]["ttft_p95_s"] <= 0.5
    assert found["advised"]["cost"] <= found["runner_up"]["cost"]
    assert found["advised"]["scaling"]["maxReplicas"] == 2


def test_the_promise_may_be_for_other_draws_of_the_trace(words: list[str]) -> None:
    found = json.loads(call(*words, "--ttft-p95", "0.5", "--draws", "2", "--json").stdout)
    assert (found["draws"], found["runs"] % 2) == (2, 0)
    assert found["advised"]["ttft_p95_s"] <= 0.5
    said = " ".join(call(*words, "--ttft-p95", "0.5", "--draws", "2").output.split())
    assert "within 0.5 s in each of 2 draws" in said
    assert "TTFT p95 is the worst draw's" in said


def test_a_trace_of_seconds_has_no_others_like_it(words: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "short.csv"
    trace.write_text("arrival_s,input_tokens,output_tokens\n0,100,10\n20,100,10\n")
    done = call(str(trace), *words[1:], "--ttft-p95", "1s", "--draws", "2")
    assert done.exit_code == 2
    assert "short.csv lasts 20 s" in " ".join(done.output.split()).replace("- ", "-")


def test_a_promise_that_nothing_keeps_is_refused_with_the_best_found(words: list[str]) -> None:
    done = call(*words, "--ttft-p95", "1ms")
    said = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "no settings keep p95 of TTFT within 0.001 s: the best found reach 0.0" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["nowhere.csv", "--ttft-p95", "2s"], "is no file and no trace", id="trace"),
        pytest.param(["azure-code", "--ttft-p95", "soon"], "is no time", id="time"),
        pytest.param(["azure-code", "--ttft-p95", "0s"], "is no time", id="none"),
        pytest.param(
            ["azure-code", "--ttft-p95", "2s", "--model", "llama-9"], "unknown model", id="model"
        ),
        pytest.param(["azure-code", "--ttft-p95", "2s", "--gpu", "H1000"], "unknown GPU", id="gpu"),
        pytest.param(
            ["azure-code", "--ttft-p95", "2s", "--gpu", "A10", "--scenario", "step"],
            "leave --model and --gpu out",
            id="both",
        ),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(arguments: list[str], complaint: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.split())


def test_an_empty_trace_has_no_advice(tmp_path: Path) -> None:
    trace = tmp_path / "empty.csv"
    trace.write_text("arrival_s,input_tokens,output_tokens\n")
    done = call(str(trace), "--ttft-p95", "2s")
    assert (done.exit_code, "holds no request" in done.output) == (2, True)
