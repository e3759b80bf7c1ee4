"""The commands catalog, explain and validate at their edges."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from servelab.cli import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize("kind", ["models", "gpus", "storage", "images", "engines"])
def test_the_catalogue_is_listed_as_json(kind: str) -> None:
    assert len(json.loads(run("catalog", kind, "-o", "json").stdout)) > 1


def test_an_entry_is_shown_with_its_sources() -> None:
    assert "aic-config" in run("catalog", "models", "llama-8b").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("catalog", "gpus", "h10"), "did you mean"),
        (("catalog", "models", "lama-8b"), "did you mean"),
        (("explain", "lama-8b", "--gpu", "h100"), "did you mean"),
        (("explain", "llama-8b", "--gpu", "h100", "--storage", "nvm"), "did you mean"),
        (("explain", "nope", "--gpu", "h100"), "`servelab catalog models` lists those there are"),
        (("explain", "llama-8b", "--gpu", "foo"), "`servelab catalog gpus` lists those there are"),
        (("explain", "--gpu", "h100"), "name a MODEL"),
        (("explain", "--gpu", "h100", "--config", "/no/such.json"), "does not exist"),
        (("validate", "--points", "/no/such.yaml"), "cannot read measured points"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(words: tuple[str, ...], sentence: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_explain_says_what_limits_a_model() -> None:
    result = run("explain", "llama-8b", "--gpu", "h100")
    assert result.exit_code == 0
    assert "is limited by" in result.stdout
    assert "Cold start" in result.stdout


def test_explain_answers_for_a_model_that_does_not_fit() -> None:
    result = run("explain", "llama-405b", "--gpu", "l4", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["fit"]["fits"] is False


def test_explain_computes_a_model_from_its_config(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 99}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    result = run("explain", "mine", "--gpu", "l4", "--config", str(file), "--json")
    assert json.loads(result.stdout)["model"] == "mine"


def test_validate_runs_a_file_of_points(tmp_path: Path) -> None:
    file = tmp_path / "points.yaml"
    file.write_text(
        "points: [{id: a, kind: decode_b1, quality: A, model: llama-8b, gpu: h100-sxm, tp: 1, "
        "weights: bf16, engine: vllm, input: 99, output: 9, load: {concurrency: 1}, "
        "metrics: {tpot_ms: 7.8}}]"
    )
    assert "1 points: 1 simulated" in run("validate", "--points", str(file)).stdout
    document = json.loads(run("validate", "--points", str(file), "--json").stdout)
    assert document["by_kind"]["decode_b1"]["n"] == 1
