"""``trtllm-serve``: flags, the file of options that a script writes, and what they switch on."""

from typing import Any

import pytest

from modelserve.engines import launch, tensorrt_llm
from modelserve.engines.launch import Launch

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.3.0"


def parsed(*command: str) -> Launch:
    container: dict[str, Any] = {"image": IMAGE, "command": list(command)}
    found = launch.parse(container, {})
    assert found is not None
    return found


def scripted(script: str) -> Launch:
    return parsed("sh", "-c", script)


def test_limits_are_flags() -> None:
    found = parsed(
        *("trtllm-serve", LLAMA, "--max_batch_size", "64", "--max_num_tokens=4096"),
        *("--max_seq_len=2048", "--tensor_parallel_size=2", "--port", "9000"),
        *("--free_gpu_memory_fraction", "0.8", "--enable_chunked_prefill"),
    )
    assert (found.max_sequences, found.max_batched_tokens) == (64, 4096)
    assert (found.max_model_tokens, found.tensor_parallel, found.port) == (2048, 2, 9000)
    assert found.gpu_memory_utilization == 0.8
    assert dict(found.options) == {"enable-chunked-prefill": "", "tp-size": "2"}


def test_metrics_are_off_by_default() -> None:
    assert parsed("trtllm-serve", LLAMA).options == ()


@pytest.mark.parametrize("flag", ["--config", "--extra_llm_api_options"])
def test_a_file_that_nobody_can_see_is_taken_to_switch_metrics_on(flag: str) -> None:
    found = parsed("trtllm-serve", LLAMA, flag, "/etc/trtllm.yaml")
    assert dict(found.options) == dict.fromkeys(tensorrt_llm.METRICS, "")


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ("return_perf_metrics: true", {"return-perf-metrics"}),
        ("return_perf_metrics: false", set()),
        (
            "enable_iter_perf_stats: true\nguided_decoding_backend: xgrammar",
            {"enable-iter-perf-stats", "guided-decoding-backend"},
        ),
    ],
)
def test_a_file_that_the_script_writes_is_read(lines: str, options: set[str]) -> None:
    script = f"echo '{lines}' > /tmp/o.yaml && trtllm-serve {LLAMA} --config /tmp/o.yaml"
    assert set(dict(scripted(script).options)) == options


def test_what_a_script_says_without_a_file_counts_for_nothing() -> None:
    assert scripted(f"echo return_perf_metrics: true; trtllm-serve {LLAMA}").options == ()
