"""Recipes: which engine stands in for a command line, and how it starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors
from modelserve.api.spec import BatchingMode, EngineType
from servelab.engine.alone import recipe
from servelab.engine.alone.settings import Settings

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def make(words: str, environment: dict[str, str] | None = None, **settings: Any) -> recipe.Recipe:
    return recipe.make(Settings(**settings), words.split(), environment or {})


@pytest.mark.parametrize(
    ("words", "engine", "port"),
    [
        (LLAMA, EngineType.VLLM, 8000),
        (f"{LLAMA} --port 9000", EngineType.VLLM, 9000),
        (f"vllm serve {LLAMA}", EngineType.VLLM, 8000),
        (f"python3 -m sglang.launch_server --model-path {LLAMA}", EngineType.SGLANG, 30_000),
        (f"trtllm-serve {LLAMA} --port 8001", EngineType.TENSORRT_LLM, 8001),
        (f"text-generation-launcher --model-id {LLAMA} --port 81", EngineType.TGI, 81),
    ],
)
def test_a_command_line_is_the_engine_it_starts(words: str, engine: EngineType, port: int) -> None:
    found = make(words)
    assert (found.spec.profile.engine, found.port) == (engine, port)
    assert make(words, port=0).port == 0


def test_an_image_alone_is_told_by_the_environment() -> None:
    image = "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8"
    found = make("", {"NIM_MAX_BATCH_SIZE": "7"}, image=image)
    assert (found.spec.profile.engine, found.spec.config.max_sequences) == (EngineType.NIM, 7)


def test_an_engine_is_called_as_it_serves_unless_it_is_given_a_name() -> None:
    assert make(LLAMA).name == "Llama-3.1-8B-Instruct"
    assert make(f"{LLAMA} --served-model-name llama").name == "llama"
    assert make(LLAMA, name="first").name == "first"


def test_settings_reach_the_engine() -> None:
    found = make(LLAMA, jitter=0.1, seed=9, batching="static")
    assert (found.spec.config.jitter, found.spec.seed) == (0.1, 9)
    assert found.spec.config.batching is BatchingMode.STATIC


def test_a_config_json_describes_a_model_the_catalogue_does_not_know(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "num_attention_heads": 8,
        "intermediate_size": 1024,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    found = make("mine/own", model_config_file=path)
    assert found.spec.config.max_model_tokens == 2048


def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="the model's name is missing"):
        make("")
    with pytest.raises(errors.InputError, match="no engine that is known"):
        make("", image="nginx")
    with pytest.raises(errors.InputError, match="cannot be read as JSON"):
        make(LLAMA, model_config_file=tmp_path / "none.json")


def test_a_cold_start_says_its_lines_in_order_and_then_serves() -> None:
    start = make(LLAMA, start="cold", storage_class="s3").start
    assert start is not None
    times = [line.at_s for line in start.lines]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert times[-1] == pytest.approx(start.ready_s)
    assert make(LLAMA).start is None


def test_slower_storage_and_a_longer_warm_up_mean_a_later_start() -> None:
    plain, slower, longer = (
        make(LLAMA, start="cold", **settings).start
        for settings in ({}, {"storage_class": "s3"}, {"warm_up_seconds": 600})
    )
    assert plain is not None
    assert slower is not None
    assert longer is not None
    assert plain.ready_s < slower.ready_s
    assert longer.ready_s > 500


def test_the_log_tells_the_address_that_was_asked_for() -> None:
    start = make("llama-3.1-8b", start="cold", host="127.0.0.2", port=81).start
    assert start is not None
    assert any("server on http://127.0.0.2:81" in line.text for line in start.lines)
    assert any("'host': '127.0.0.2', 'port': 81" in line.text for line in start.lines)
