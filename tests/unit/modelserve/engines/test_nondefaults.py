"""What a vLLM says of its arguments, as 0.33.0 says it of the same ones."""

import pytest

from modelserve.engines import commandline, nondefaults, vllm

# (words, what the real `get_non_default_args` makes of them, after the model)
RECORDED = (
    ("--seed 0 --port=8000 --load-format auto", "{'model_tag': 'M', 'model': 'M'}"),
    (
        "--host 127.0.0.1 --max-model-len 2k --enforce-eager -tp 2 --gpu-memory-utilization 0.5",
        "{'model_tag': 'M', 'host': '127.0.0.1', 'model': 'M', 'max_model_len': 2000, "
        "'enforce_eager': True, 'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.5}",
    ),
    (
        "--max-model-len auto -O3 --api-key a b --served-model-name x y",
        "{'model_tag': 'M', 'api_key': '***', 'model': 'M', 'max_model_len': -1, "
        "'served_model_name': ['x', 'y'], 'optimization_level': '3'}",
    ),
    (
        "-O2 --no-enable-prefix-caching --no-async-scheduling --kv-cache-dtype fp8 --quantization "
        "fp8 --tokenizer-mode auto",
        "{'model_tag': 'M', 'model': 'M', 'quantization': 'fp8', 'kv_cache_dtype': 'fp8', "
        "'enable_prefix_caching': False, 'async_scheduling': False, 'optimization_level': '2'}",
    ),
    (
        '--hf-overrides {"a":1} --hf-token --limit-mm-per-prompt {"image":2} '
        '--override-generation-config {"temperature":0.5}',
        "{'model_tag': 'M', 'model': 'M', 'hf_token': '***', 'hf_overrides': {'a': 1}, "
        "'override_generation_config': {'temperature': 0.5}, 'limit_mm_per_prompt': {'image': 2}}",
    ),
    (
        '--allowed-origins ["*"] --allowed-methods ["*"]',
        "{'model_tag': 'M', 'allowed_origins': ['*'], 'model': 'M'}",
    ),
    (
        "--max-num-batched-tokens 8K --no-enable-chunked-prefill --ssl-keyfile= --chat-template "
        "None --uvicorn-log-level warning",
        "{'model_tag': 'M', 'uvicorn_log_level': 'warning', 'model': 'M', "
        "'max_num_batched_tokens': 8192, 'enable_chunked_prefill': False}",
    ),
    (
        "--ignore-patterns original/**/* --middleware x.y --numa-bind-nodes 0 1 --watermark 0.1 "
        "--use-tqdm-on-load",
        "{'model_tag': 'M', 'middleware': ['x.y'], 'model': 'M', 'numa_bind_nodes': [0, 1], "
        "'watermark': 0.1}",
    ),
)


def read(*words: str) -> str:
    container = commandline.read({"image": "x", "command": ["vllm", "serve", *words]})
    flags = vllm.recognise(container)
    assert flags is not None
    return repr(nondefaults.of(vllm.table(), flags))


@pytest.mark.parametrize(("words", "expected"), RECORDED)
def test_it_is_what_the_real_one_tells(words: str, expected: str) -> None:
    assert read("M", *words.split()) == expected


@pytest.mark.parametrize(
    "words",
    [("--compilation-config", '{"cudagraph_mode":"PIECEWISE"}'), ("-cc.cudagraph_mode=PIECEWISE",)],
)
def test_a_configuration_whose_default_is_no_json_is_told_as_it_was_given(
    words: tuple[str, ...],
) -> None:
    assert "'compilation_config': {'cudagraph_mode': 'PIECEWISE'}" in read("M", *words)


def test_the_default_model_is_told_only_as_what_was_asked_for() -> None:
    assert read("Qwen/Qwen3-0.6B") == "{'model_tag': 'Qwen/Qwen3-0.6B'}"


@pytest.mark.parametrize(
    ("words", "servers"),
    [
        ("-dp 2", 2),
        ("-dp 2 --api-server-count 1", None),
        ("-dp 2 --data-parallel-rank 1", None),
        ("-dp 4 --data-parallel-hybrid-lb --data-parallel-size-local 2", 2),
    ],
)
def test_data_parallel_ranks_have_a_server_each(words: str, servers: int | None) -> None:
    assert (f"'api_server_count': {servers}" in read("M", *words.split())) == bool(servers)
