"""NIM: set by environment variables alone."""

from typing import Any

from modelserve.engines import launch
from modelserve.engines.launch import Launch

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def parsed(**env: str) -> Launch:
    told: list[Any] = [{"name": name, "value": value} for name, value in env.items()]
    image = "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.10.1"
    found = launch.parse({"image": image, "env": told}, {})
    assert found is not None
    return found


def test_the_environment_says_what_flags_say_elsewhere() -> None:
    found = parsed(
        NIM_MODEL_NAME=f"hf://{LLAMA}",
        NIM_SERVED_MODEL_NAME="llama",
        NIM_MAX_NUM_SEQS="32",
        NIM_MAX_NUM_BATCHED_TOKENS="4096",
        NIM_MAX_MODEL_LEN="8192",
        NIM_KVCACHE_PERCENT="0.8",
        NIM_SERVER_PORT="9000",
    )
    assert found.model.name == LLAMA
    assert found.served_name == "llama"
    assert (found.max_sequences, found.max_batched_tokens) == (32, 4096)
    assert (found.max_model_tokens, found.port) == (8192, 9000)
    assert found.gpu_memory_utilization == 0.8


def test_the_image_is_the_model_where_nothing_names_one() -> None:
    found = parsed()
    assert found.model.name == found.served_name == "meta/llama-3.1-8b-instruct"
