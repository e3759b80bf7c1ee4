"""How much KV cache a replica holds, against engines' logs and arithmetic on published shapes."""

import dataclasses

import pytest

from modelserve.api.spec import EngineType
from modelserve.catalog import constants, gpus, models
from modelserve.engines import kv, launch, types

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


def started(model: str, *words: str) -> types.Launch:
    """vLLM on an H100, for requests of up to 32 768 tokens."""
    command = ["vllm", "serve", models.find(model).name, "--max-model-len=32768", *words]
    found = launch.parse({"image": "vllm/vllm-openai:v0.33.0", "command": command}, {}, H100)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("model", "layers", "windowed", "full"),
    [
        ("gemma-3-27b-it", 10, 6, 1),
        ("gemma-3-12b-it", 8, 5, 1),
        ("gpt-oss-20b", 12, 1, 1),
        ("mistral-7b-v0.1", 32, 1, 0),
        ("llama-8b", 32, 0, 1),
    ],
)
def test_layers_are_in_groups_of_as_many_as_the_fewer_kind_has(
    model: str, layers: int, windowed: int, full: int
) -> None:
    found = kv.tables(started(model))
    window = models.find(model).window_tokens
    assert (found.layers, found.windows) == (layers, (window,) * windowed + (None,) * full)


def test_vllm_logs_more_tokens_for_a_model_with_windows_than_all_layers_in_full_would_hold() -> (
    None
):
    hybrid, whole = (
        kv.capacity_of_launch(started("gemma-3-27b-it", *words), H100)
        for words in ((), ("--disable-hybrid-kv-cache-manager",))
    )
    assert whole == kv.capacity_tokens(
        models.find("gemma-3-27b-it"), H100, 1, gpu_memory_utilization=0.92
    )
    assert hybrid > 1.4 * whole


def test_a_request_takes_all_blocks_in_full_layers_and_a_windows_worth_in_the_others() -> None:
    shared = kv.Tables(10, (1024, 1024, None), in_flight_tokens=8192)
    assert shared.blocks(512, 131_072, 16) == 3 * 32
    assert shared.blocks(131_072, 131_072, 16) == 8192 + 2 * (-(-(1023 + 8192) // 16) + 1)


def test_the_longest_request_is_the_one_for_which_the_blocks_are_just_enough() -> None:
    found = dataclasses.replace(started("gemma-3-27b-it"), max_model_tokens=131_072)
    longest, shared = kv.longest_tokens(found, H100), kv.tables(found)
    blocks = kv.pool_blocks(found, H100, 16)
    assert shared.blocks(longest, longest, 16) <= blocks
    assert longest == 131_072 or shared.blocks(longest + 1, longest + 1, 16) > blocks


def test_a_long_context_fits_a_model_with_windows_that_all_layers_in_full_would_not() -> None:
    gemma = models.find("gemma-3-27b-it")
    memory = 0.92, EngineType.VLLM, 2
    whole = kv.capacity_tokens(gemma, H100, 1, "none", *memory)
    assert whole < 65_536 <= kv.capacity_in_longest(gemma, H100, 1, "none", *memory, 65_536)
    assert kv.capacity_in_longest(LLAMA_8B, H100, 1, "none", *memory, 65_536) == kv.capacity_tokens(
        LLAMA_8B, H100, 1, "none", *memory
    )


def sglang(model: str, *words: str) -> int:
    """Tokens of SGLang's pool on an H100."""
    command = ["python3", "-m", "sglang.launch_server", "--model-path", models.find(model).name]
    found = launch.parse({"image": "lmsysorg/sglang", "command": [*command, *words]}, {}, H100)
    assert found is not None
    return kv.capacity_of_launch(found, H100)


def test_sglang_keeps_a_share_of_the_tokens_in_layers_with_windows() -> None:
    whole = sglang("gpt-oss-20b", "--disable-hybrid-swa-memory")
    assert sglang("gpt-oss-20b") == pytest.approx(whole * 24 / (12 + 0.8 * 12), abs=16)
    assert sglang("gpt-oss-20b", "--swa-full-tokens-ratio=0.5") == pytest.approx(
        whole * 24 / 18, abs=16
    )


def test_sglang_has_no_such_pool_for_gemma() -> None:
    assert sglang("gemma-3-27b-it") == sglang("gemma-3-27b-it", "--disable-hybrid-swa-memory")


def two_pools(
    model: str, windows: str, longest: int, more: str = ""
) -> tuple[int, tuple[int, int] | None, int]:
    """TensorRT-LLM's pools on an H100, and how many sequences of 1000 tokens they hold."""
    told = f"printf '%s' 'max_attention_window: {windows}{more}' > /tmp/o.yaml"
    flags = f"--max_seq_len={longest} --max_num_tokens=8192 --max_batch_size=64"
    serve = f"trtllm-serve {models.find(model).name} {flags} --config=/tmp/o.yaml"
    container = {"image": "trtllm", "command": ["sh", "-c"], "args": [f"{told} && {serve}"]}
    found = launch.parse(container, {}, H100)
    assert found is not None
    first, second = kv.capacity_of_launch(found, H100), kv.second_pool(found, H100)
    return first, second, kv.sequences(found, H100, 1000)


def test_tensorrt_llm_divides_memory_by_window_and_layers_if_its_file_names_windows() -> None:
    whole, none, _ = two_pools("gpt-oss-20b", "[]", 16_384)
    first, second, sequences = two_pools("gpt-oss-20b", "[128, 16384]", 16_384)
    assert none is None
    assert first == pytest.approx(whole * 2 * 16_384 / (16_384 + 128), rel=1e-4)
    assert second == (128, first * 128 // 16_384)
    assert sequences == second[1] // 128


@pytest.mark.parametrize(("more", "typical"), [("", 16_384), ("\navg_seq_len: 1024", 1024)])
def test_its_newer_manager_divides_memory_as_a_typical_step_has_tokens(
    more: str, typical: int
) -> None:
    whole, _, _ = two_pools("gpt-oss-20b", "[]", 16_384)
    told = f"\nuse_kv_cache_manager_v2: true{more}"
    first, second, _ = two_pools("gpt-oss-20b", "[128, 16384]", 16_384, told)
    share = (8192 + 63 * 128) / (8192 + 63 * typical)
    assert first == pytest.approx(whole * 2 / (1 + share), rel=1e-4)
    assert second is not None
    assert second[0] == 128
    assert second[1] == pytest.approx(first * share, abs=1)


def test_tensorrt_llm_told_windows_alone_keeps_all_tokens() -> None:
    assert two_pools("gpt-oss-20b", "[128]", 16_384) == two_pools("gpt-oss-20b", "[]", 16_384)


def test_what_fits_in_sglangs_two_pools_is_counted_before_it_is_started() -> None:
    model, memory = models.find("gpt-oss-20b"), (0.9, EngineType.SGLANG, 2)
    found = kv.capacity_in_longest(model, H100, 1, "none", *memory, 32_768)
    assert found == sglang("gpt-oss-20b")
    assert found > kv.capacity_tokens(model, H100, 1, "none", *memory)
