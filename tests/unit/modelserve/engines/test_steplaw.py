"""The step law against measured points, and what must hold for any input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus, models
from modelserve.engines import kv, steplaw

LLAMA_8B, LLAMA_70B = models.find("llama-8b"), models.find("llama-70b")
H100, A100 = gpus.find("h100"), gpus.find("a100")


def law(model: str, gpu: str, tensor_parallel: int, quantization: str) -> steplaw.StepLaw:
    return steplaw.StepLaw.of(models.find(model), gpus.find(gpu), tensor_parallel, quantization)


def test_one_sequence_of_8b_on_an_h100_uses_58_percent_of_its_bandwidth() -> None:
    step_s = law("llama-8b", "h100", 1, "none").decode_step_s(1, 400)
    assert LLAMA_8B.read_bytes_batch_1 / step_s / 3.35e12 == pytest.approx(0.58, abs=0.03)


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


def test_a_small_chunk_rides_on_the_weights() -> None:
    step = law("llama-8b", "h100", 1, "none")
    assert step.step_s(8, 8 * 500, 32) == step.decode_step_s(8, 500)
    assert step.step_s(8, 8 * 500, 8192) > 2 * step.decode_step_s(8, 500)


def test_an_empty_step_takes_no_time() -> None:
    assert law("llama-8b", "h100", 1, "none").step_s(0, 0) == 0.0


def test_chunks_of_a_prompt_attend_to_what_came_before() -> None:
    step = law("llama-8b", "h100", 1, "none")
    whole_s = step.prefill_s(32_768)
    chunks_s = sum(step.step_s(0, 0, 8192, 8192 * chunk) for chunk in range(4))
    assert chunks_s == pytest.approx(whole_s, rel=1e-9)


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
