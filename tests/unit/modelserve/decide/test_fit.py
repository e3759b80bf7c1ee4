"""Whether a model fits, and the sentence that says so."""

from hypothesis import given
from hypothesis import strategies as st

from modelserve.catalog import gpus, models
from modelserve.decide import fit

LLAMA_8B, LLAMA_70B = models.find("llama-8b"), models.find("llama-70b")
H100 = gpus.find("h100")


def test_8b_fits_one_h100() -> None:
    verdict = fit.fit(LLAMA_8B, H100, 1, "none", 8192)
    assert verdict.fits
    assert verdict.reason is fit.Reason.FITS
    assert verdict.smallest_tensor_parallel == 1
    assert verdict.slots(32, 2000) == 32


def test_70b_does_not_fit_one_h100_and_the_sentence_has_the_numbers() -> None:
    verdict = fit.fit(LLAMA_70B, H100, 1, "none", 8192)
    assert verdict.reason is fit.Reason.WEIGHTS_DO_NOT_FIT
    assert verdict.needed_bytes == 141_107_412_992
    assert verdict.smallest_tensor_parallel == 2
    assert verdict.message == (
        "meta-llama/Llama-3.1-70B-Instruct at tensorParallel 1 needs 141.1 GB for its weights; "
        "one NVIDIA H100 80GB HBM3 offers 73.4 GB after the engine's own share: "
        "tensorParallel 2 would leave 5.7 GB for the KV cache"
    )


def test_a_long_context_may_leave_no_room_for_the_cache() -> None:
    verdict = fit.fit(LLAMA_70B, H100, 2, "none", 131_072)
    assert verdict.reason is fit.Reason.NO_ROOM_FOR_KV_CACHE
    assert verdict.smallest_tensor_parallel == 4
    assert "tensorParallel 4 would leave" in verdict.message
    assert f"lower engine.maxModelLength to {verdict.kv_tokens} or less" in verdict.message


def test_fp8_needs_a_gpu_that_has_it() -> None:
    verdict = fit.fit(LLAMA_8B, gpus.find("a100"), 1, "fp8", 8192)
    assert verdict.reason is fit.Reason.QUANTIZATION_UNSUPPORTED
    assert verdict.smallest_tensor_parallel is None
    assert "A100" in verdict.message


def test_what_nothing_holds_is_told_what_else_would() -> None:
    verdict = fit.fit(models.find("llama-405b"), gpus.find("a100-40gb"), 8, "none", 2048)
    assert verdict.smallest_tensor_parallel is None
    assert verdict.message.endswith("or quantization int4 with tensorParallel 8")


def test_more_than_the_models_context_is_refused_before_its_weights_are_looked_at() -> None:
    verdict = fit.fit(models.find("llama-2-7b-hf"), gpus.find("l4"), 1, "none", 8192)
    assert verdict.reason is fit.Reason.LONGER_THAN_CONTEXT
    assert "a context of 4096 tokens, but engine.maxModelLength is 8192" in verdict.message
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 in engine.env" in verdict.message


def test_slots_are_bounded_by_the_cache() -> None:
    verdict = fit.fit(LLAMA_70B, H100, 2, "none", 8192)
    assert verdict.slots(32, 2000) == verdict.kv_tokens // 2000 < 32


@given(
    model=st.sampled_from(models.all_models()),
    gpu=st.sampled_from(gpus.all_gpus()),
    size=st.sampled_from(fit.TENSOR_PARALLEL_SIZES),
    quantization=st.sampled_from(["none", "fp8", "int4"]),
    length=st.integers(1, 200_000),
)
def test_the_smallest_tensor_parallel_fits_and_the_next_smaller_does_not(
    model: models.Model, gpu: gpus.Gpu, size: int, quantization: str, length: int
) -> None:
    verdict = fit.fit(model, gpu, size, quantization, length)
    smallest = verdict.smallest_tensor_parallel
    assert verdict.fits == (smallest is not None and smallest <= size)
    if smallest is not None:
        assert fit.fit(model, gpu, smallest, quantization, length).fits
    if smallest is not None and smallest > 1:
        assert not fit.fit(model, gpu, smallest // 2, quantization, length).fits


def test_ranks_cannot_be_slices_of_a_gpu() -> None:
    verdict = fit.fit(LLAMA_8B, gpus.find("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"), 2, "none", 8192)
    assert verdict.reason is fit.Reason.RANKS_ON_SLICES
    assert "set gpu.tensorParallel to 1 and take a larger slice, or whole GPUs" in verdict.message


def test_what_a_slice_cannot_hold_is_not_sent_to_more_of_them() -> None:
    verdict = fit.fit(LLAMA_8B, gpus.find("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"), 1, "none", 8192)
    assert verdict.smallest_tensor_parallel is None
    assert "take a larger slice, or a whole GPU" in verdict.message
