"""The step law against measured points, and what must hold for any input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.api.spec import EngineType
from modelserve.catalog import constants, gpus, models
from modelserve.engines import launch, steplaw, stepparts
from modelserve.engines.generations import Generation

LLAMA_8B = models.find("llama-8b")
H100 = gpus.find("h100")


def law(model: str, gpu: str, tensor_parallel: int, quantization: str) -> steplaw.StepLaw:
    return steplaw.StepLaw.of(models.find(model), gpus.find(gpu), tensor_parallel, quantization)


def test_one_sequence_of_8b_on_an_h100_used_58_percent_of_its_bandwidth_under_vllm_0_7() -> None:
    step = steplaw.StepLaw.of(LLAMA_8B, H100, 1, generation=Generation.VLLM_V0)
    share = LLAMA_8B.read_bytes_batch_1 / step.decode_step_s(1, 400) / 3.35e12
    assert share == pytest.approx(0.58, abs=0.05)


@pytest.mark.parametrize(("tensor_parallel", "seen_ms"), [(2, 46.9), (4, 26.3), (8, 16.0)])
def test_70b_on_a100_is_near_what_was_seen(tensor_parallel: int, seen_ms: float) -> None:
    step_s = law("llama-70b", "a100", tensor_parallel, "none").decode_step_s(1, 400)
    assert step_s * 1e3 == pytest.approx(seen_ms, rel=0.12)


@pytest.mark.parametrize(
    ("concurrency", "prompt", "seen_ms"),
    [(4, 1024, 11.78), (16, 1024, 13.19), (64, 1024, 19.51), (4, 8192, 13.27), (16, 8192, 21.06)],
)
def test_70b_fp8_in_a_closed_loop_is_near_what_was_seen(
    concurrency: int, prompt: int, seen_ms: float
) -> None:
    answer = 922
    seen = law("llama-70b", "h100", 4, "fp8")
    prompt_tokens = round(prompt * 0.9)
    decode_s = seen.service_s(prompt_tokens, answer, concurrency) - seen.first_token_s(
        prompt_tokens
    )
    assert decode_s / (answer - 1) * 1e3 == pytest.approx(seen_ms, rel=0.16)


def test_a_batch_of_eight_costs_about_what_one_does() -> None:
    step = law("llama-70b", "h100", 4, "none")
    assert 1.0 < step.decode_step_s(8, 300) / step.decode_step_s(1, 300) < 1.15


def test_tensorrt_llm_has_less_overhead() -> None:
    other = steplaw.StepLaw.of(LLAMA_8B, H100, 1, "none", EngineType.TENSORRT_LLM)
    assert other.decode_step_s(1, 400) < law("llama-8b", "h100", 1, "none").decode_step_s(1, 400)


def test_a_chunk_rides_on_the_weights_that_decoding_reads() -> None:
    step = law("llama-8b", "h100", 1, "none")
    mixed_s = step.step_s(8, 8 * 500, 32)
    assert step.decode_step_s(8, 500) < mixed_s < step.decode_step_s(8, 500) + step.prefill_s(32)
    assert step.step_s(8, 8 * 500, 8192) > 2 * step.decode_step_s(8, 500)


def test_vllm_before_0_8_computes_prompts_and_decodes_apart() -> None:
    step = steplaw.StepLaw.of(LLAMA_8B, H100, 1, generation=Generation.VLLM_V0)
    apart_s = step.prefill_s(300) + step.decode_step_s(8, 500)
    assert step.step_s(8, 8 * 500, 300) == pytest.approx(apart_s, rel=1e-12)


def test_host_work_hides_behind_the_gpu_where_the_engine_overlaps_it() -> None:
    behind = steplaw.StepLaw.of(LLAMA_8B, H100, 1, generation=Generation.VLLM_ASYNC)
    between = steplaw.StepLaw.of(LLAMA_8B, H100, 1, generation=Generation.VLLM_V1)
    assert stepparts.of_step(behind, 8, 4000).per_sequence_s == 0.0
    assert stepparts.of_step(between, 8, 4000).per_sequence_s > 0.0


def test_a_model_too_small_for_its_host_waits_for_it() -> None:
    small = steplaw.StepLaw.of(models.find("qwen2.5-0.5b"), H100, 1)
    host_s = small.times.step_s + 200 * small.times.sequence_s
    assert small.decode_step_s(200, 100) == host_s


def test_a_prompt_beyond_the_captured_sizes_is_launched_layer_by_layer() -> None:
    small = steplaw.StepLaw.of(models.find("qwen2.5-0.5b"), H100, 1)
    jump_s = small.prefill_s(513) - small.prefill_s(512)
    assert jump_s == pytest.approx(small.launch_s - small.captured_launch_s, rel=0.05)


@given(batch=st.integers(1, 512), each=st.integers(1, 8192))
def test_decoding_is_a_line_over_the_tokens_held_but_for_its_least(batch: int, each: int) -> None:
    step, held = law("llama-70b", "h100", 4, "none"), batch * each
    fixed_s, per_token_s, least_s = step.decode_terms(batch) or (0.0, 0.0, 0.0)
    assert step.step_s(batch, held) == max(fixed_s + per_token_s * held, least_s)


def test_an_empty_step_takes_no_time() -> None:
    assert law("llama-8b", "h100", 1, "none").step_s(0, 0) == 0.0


def test_chunks_of_a_prompt_attend_to_what_came_before() -> None:
    step = law("llama-8b", "h100", 1, "none")
    first_s, last_s = step.step_s(0, 0, 8192), step.step_s(0, 0, 8192, 3 * 8192)
    pairs = 8192 * 3 * 8192
    assert last_s - first_s == pytest.approx(pairs * step.attention_pair_s, rel=1e-9)


@given(
    batch=st.integers(1, 512),
    context=st.integers(1, 8192),
    prefill=st.integers(0, 16384),
    model=st.sampled_from(models.all_models()),
    tensor_parallel=st.sampled_from([1, 2, 4, 8]),
)
def test_more_work_never_takes_less_time(
    batch: int, context: int, prefill: int, model: models.Model, tensor_parallel: int
) -> None:
    step = steplaw.StepLaw.of(model, H100, tensor_parallel)
    least_s = step.step_s(batch, batch * context, prefill)
    assert 0 < least_s <= step.step_s(batch, batch * context + 1, prefill)
    assert least_s <= step.step_s(batch + 1, (batch + 1) * context, prefill)
    assert least_s <= step.step_s(batch, batch * context, prefill + 1)
    assert step.step_s(0, 0, prefill) <= least_s


def test_all_reduces_of_70b_over_eight_h100_follow_messages_and_link() -> None:
    fixed = constants.load()
    step = law("llama-70b", "h100", 8, "none")
    bytes_per_token = 8192 * 2
    ring_s = 2 * 7 / 8 * bytes_per_token / (fixed.all_reduce_share_fast * 450e9)
    assert step.reduce_token_s == pytest.approx(160 * ring_s)
    assert step.reduce_fixed_s == pytest.approx(160 * fixed.all_reduce_small_fast_s)


def test_all_reduces_are_slower_over_pcie_and_slower_still_through_the_host() -> None:
    nvlink, pcie, staged = (
        law("llama-8b", gpu, 4, "none").reduce_token_s for gpu in ("a100", "l40s", "rtx4090")
    )
    assert nvlink < pcie < staged


@pytest.mark.parametrize(("tokens", "touched"), [(1, 2.0), (2, 3.5), (1000, 8.0)])
def test_more_tokens_read_more_of_mixtrals_eight_experts(tokens: int, touched: float) -> None:
    mixtral = models.find("mistralai/Mixtral-8x7B-Instruct-v0.1")
    expert_bytes = 3 * 4096 * 14336 * 32 * 2
    rest = mixtral.read_bytes_batch_1 - 2 * expert_bytes
    read = mixtral.read_bytes_per_step("none", tokens)
    assert (read - rest) / expert_bytes == pytest.approx(touched, rel=0.01)


def test_half_of_gpt_oss_layers_read_no_further_than_their_window() -> None:
    step = steplaw.StepLaw.of(models.find("gpt-oss-120b"), H100, 1)
    inside_s = step.step_s(1, 128) - step.step_s(1, 127)
    beyond_s = step.step_s(1, 10_000) - step.step_s(1, 9_999)
    assert beyond_s == pytest.approx(inside_s / 2, rel=1e-6)


def test_an_fp8_cache_is_read_in_half_the_time() -> None:
    whole, half = (steplaw.StepLaw.of(LLAMA_8B, H100, 1, kv_dtype_bytes=n) for n in (2, 1))
    assert stepparts.of_step(half, 8, 80_000).kv_s == pytest.approx(
        stepparts.of_step(whole, 8, 80_000).kv_s / 2
    )


def test_an_image_says_the_generation_of_its_engine() -> None:
    words = {"command": ["vllm", "serve", LLAMA_8B.name]}
    older, newer = (
        launch.parse({"image": f"vllm/vllm-openai:{tag}", **words}, {}, H100)
        for tag in ("v0.7.3", "v0.33.0")
    )
    assert older is not None
    assert newer is not None
    assert not steplaw.StepLaw.of_launch(older, H100).times.mixes
    assert steplaw.StepLaw.of_launch(newer, H100).times.overlapped


def test_without_cuda_graphs_every_layer_is_launched_in_every_step() -> None:
    eager = steplaw.StepLaw.of(LLAMA_8B, H100, 1, eager=True)
    assert eager.decode_step_s(1, 100) == eager.launch_s
    assert stepparts.of_step(eager, 1, 100).total_s == pytest.approx(eager.launch_s)
    assert eager.decode_step_s(512, 4000) > eager.launch_s
