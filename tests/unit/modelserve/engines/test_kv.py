"""How much KV cache a replica holds, against engines' logs and arithmetic on published shapes."""

import pytest

from modelserve.api.spec import EngineType
from modelserve.catalog import constants, gpus, models
from modelserve.engines import kv, launch

LLAMA_8B, LLAMA_70B = models.find("llama-8b"), models.find("llama-70b")
H100, A100 = gpus.find("h100"), gpus.find("a100")


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "tokens"),
    [("llama-70b", 4, 468_752), ("qwen3-235b-a22b", 8, 294_816)],
)
def test_the_kv_cache_holds_about_what_engines_log(
    model: str, tensor_parallel: int, tokens: int
) -> None:
    room = kv.capacity_tokens(models.find(model), H100, tensor_parallel)
    assert room == pytest.approx(tokens, rel=0.04)
    assert room % 16 == 0


def test_no_room_is_zero_tokens() -> None:
    assert kv.capacity_tokens(LLAMA_70B, A100, 1) == 0
    assert kv.room_bytes(LLAMA_70B, A100, 1) < 0


def test_an_fp8_cache_holds_twice_the_tokens() -> None:
    whole, half = (kv.capacity_tokens(LLAMA_8B, H100, 1, kv_dtype_bytes=n) for n in (2, 1))
    assert half == pytest.approx(2 * whole, abs=16)


def test_vllm_is_told_of_an_fp8_cache_and_holds_twice_the_tokens() -> None:
    words = ("vllm", "serve", LLAMA_8B.name, "--max-model-len=8192")
    plain = launch.parse({"image": "img", "command": [*words]}, {}, H100)
    told = launch.parse({"image": "img", "command": [*words, "--kv-cache-dtype=fp8"]}, {}, H100)
    assert plain is not None
    assert told is not None
    assert told.kv_dtype_bytes == 1
    whole = kv.capacity_of_launch(plain, H100)
    assert kv.capacity_of_launch(told, H100) == pytest.approx(2 * whole, abs=16)


def test_tensorrt_llm_takes_its_share_of_what_the_weights_leave() -> None:
    fixed = constants.load()
    visible = H100.driver_memory_bytes - fixed.driver_reserve_bytes
    free = visible - fixed.activation_reserve_bytes - LLAMA_8B.weight_bytes()
    room = kv.room_bytes(LLAMA_8B, H100, 1, engine=EngineType.TENSORRT_LLM)
    assert room == pytest.approx(0.9 * free, abs=1)
    assert room > kv.room_bytes(LLAMA_8B, H100, 1)


def test_a_layer_with_a_window_keeps_what_is_in_it() -> None:
    gemma = models.find("gemma-3-27b-it")
    layer_bytes = 2 * 16 * 128 * 2
    assert gemma.kv_bytes(9216) == layer_bytes * (10 * 9216 + 52 * 1024)


def test_long_sequences_with_windows_leave_room_for_more_tokens() -> None:
    gemma = models.find("gemma-3-27b-it")
    room = kv.room_bytes(gemma, H100, 1)
    long = kv.capacity_tokens(gemma, H100, 1, context_tokens=9216)
    assert long == pytest.approx(room * 9216 / gemma.kv_bytes(9216), abs=16)
    assert long > 3 * kv.capacity_tokens(gemma, H100, 1)


def test_a_latent_cache_is_576_values_a_layer_and_lies_whole_on_each_gpu() -> None:
    deepseek = models.find("deepseek-r1")
    assert deepseek.kv_bytes(1) == 61 * 576 * 2
    room = kv.room_bytes(deepseek, gpus.find("h200"), 8)
    capacity = kv.capacity_tokens(deepseek, gpus.find("h200"), 8)
    assert capacity == pytest.approx(room / (61 * 576 * 2), abs=16)


def test_heads_are_copied_where_there_are_more_gpus_than_heads() -> None:
    assert LLAMA_70B.kv_shards(4) == 4
    assert models.find("qwen2.5-0.5b").kv_shards(8) == 2
