"""What vLLM's log repeats of how it was started, beside starts of the real 0.33.0."""

from collections.abc import Sequence

import pytest

from modelserve.catalog import gpus
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import launch
from servelab.engine.surfaces import startlines
from servelab.engine.surfaces.vllm import logs

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def lines(*arguments: str, model: str = LLAMA) -> Sequence[str]:
    gpu = gpus.find("NVIDIA-H100-80GB-HBM3")
    container = {"image": "x", "command": ["vllm", "serve", model, *arguments]}
    parsed = launch.parse(container, {}, gpu)
    assert parsed is not None
    planned = coldstart.plan(parsed, gpu, nodefacts.node_rates({}), nodefacts.CacheState())
    return [line.text for line in logs.start_lines(parsed, planned, gpu)]


def told(begins: str, *arguments: str) -> str:
    (line,) = (text for text in lines(*arguments) if begins in text)
    return line.partition(begins)[2]


def test_only_arguments_that_were_given_are_told() -> None:
    expected = f"{{'model_tag': '{LLAMA}', 'port': 80, 'model': '{LLAMA}', 'max_num_seqs': 8}}"
    assert told("non-default args: ", "--max-num-seqs=8", "--port", "80") == expected


def test_adapters_show_as_vllm_shows_them() -> None:
    shown = told("non-default args: ", "--lora-modules", "a=b")
    adapter = "LoRAModulePath(name='a', path='b', base_model_name=None, is_3d_lora_weight=False)"
    assert f"'lora_modules': [{adapter}]" in shown


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), f"model='{LLAMA}', speculative_config=None, tokenizer='{LLAMA}', skip_tokenizer_init"),
        ((), "dtype=torch.bfloat16, max_seq_len=131072, download_dir=None, load_format=auto, "),
        (("--dtype=half",), "dtype=torch.float16, "),
        (("--served-model-name", "a", "b"), "seed=0, served_model_name=a, enable_prefix_caching"),
        (("--quantization=fp8", "--enforce-eager"), "quantization=fp8, quantization_config=None, "),
        (("--no-enable-chunked-prefill",), "enable_chunked_prefill=False, "),
        (("--reasoning-parser=qwen3",), "reasoning_parser='qwen3', "),
    ],
)
def test_the_engine_repeats_its_configuration(arguments: tuple[str, ...], part: str) -> None:
    assert part in told("with config: ", *arguments)


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ((), "http://0.0.0.0:8000"),
        (("--host", "::1", "--port=81"), "http://[::1]:81"),
        (("--uds=/x",), "unix:/x"),
    ],
)
def test_the_server_says_where_it_listens(arguments: tuple[str, ...], address: str) -> None:
    assert told("Starting vLLM server on ", *arguments) == address


def test_routes_are_listed_and_documents_only_where_they_are() -> None:
    paths = [text.partition("Route: ")[2] for text in lines() if "Route: " in text]
    assert paths[0] == "/openapi.json, Methods: GET, HEAD"
    assert "/v1/chat/completions, Methods: POST" in paths
    fewer = [text for text in lines("--disable-fastapi-docs") if "Route: " in text]
    assert len(paths) - len(fewer) == 4


def test_a_rank_that_is_its_own_process_says_so() -> None:
    assert any(text.startswith("(Worker_TP0 pid=") for text in lines("-tp", "2"))
    assert not any("Worker" in text for text in lines())


def test_uvicorn_has_no_mark_of_the_process() -> None:
    assert lines()[-3:] == [
        "INFO:     Started server process [1]",
        "INFO:     Waiting for application startup.",
        "INFO:     Application startup complete.",
    ]


@pytest.mark.parametrize(
    ("done", "took_s", "said"),
    [
        (0, 8.0, "00:00<?, ?it/s"),
        (1, 8.0, "00:02<00:06,  2.00s/it"),
        (4, 2.0, "00:02<00:00,  2.00it/s"),
        (2, 9000.0, "1:15:00<1:15:00, 2250.00s/it"),
    ],
)
def test_a_progress_bar_tells_its_pace(done: int, took_s: float, said: str) -> None:
    assert startlines.pace(done, 4, took_s) == said
