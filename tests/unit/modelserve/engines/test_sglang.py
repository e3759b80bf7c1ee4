"""SGLang: flags, and what only its surface and its metrics go by."""

import pytest

from modelserve.engines import launch
from modelserve.engines.launch import Launch

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def parsed(*flags: str) -> Launch:
    words = ["python3", "-m", "sglang.launch_server", f"--model-path={LLAMA}", *flags]
    found = launch.parse({"image": "lmsysorg/sglang:v0.5.23", "command": words}, {})
    assert found is not None
    return found


def test_limits_are_flags() -> None:
    found = parsed(
        *("--max-running-requests=64", "--chunked-prefill-size", "4096", "--tp=2"),
        *("--context-length=2048", "--max-queued-requests=10", "--mem-fraction-static=0.8"),
        *("--disable-radix-cache", "--disable-cuda-graph", "--port=9000"),
    )
    assert (found.max_sequences, found.max_batched_tokens) == (64, 4096)
    assert (found.max_model_tokens, found.queue_limit, found.port) == (2048, 10, 9000)
    assert (found.tensor_parallel, found.gpu_memory_utilization) == (2, 0.8)
    assert (found.prefix_caching, found.enforce_eager) == (False, True)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ((), set()),
        (("--enable-metrics",), {"enable-metrics"}),
        (
            ("--enable-cache-report", "--schedule-policy", "lpm"),
            {"enable-cache-report", "schedule-policy"},
        ),
        (("--tensor-parallel-size=4",), {"tp-size"}),
    ],
)
def test_what_only_it_has_is_an_option(flags: tuple[str, ...], options: set[str]) -> None:
    assert {name for name, _ in parsed(*flags).options} == options


@pytest.mark.parametrize(
    ("method", "quantization"), [("fp8", "fp8"), ("awq_marlin", "int4"), ("modelopt_fp4", "int4")]
)
def test_methods_of_quantization(method: str, quantization: str) -> None:
    assert parsed(f"--quantization={method}").quantization == quantization
