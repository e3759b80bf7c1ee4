"""The parts of a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.catalog import gpus, models
from modelserve.engines import steplaw, stepparts

LAWS = [
    steplaw.StepLaw.of(models.find(model), gpus.find(gpu), tensor_parallel, quantization)
    for model, gpu, tensor_parallel, quantization in (
        ("llama-8b", "h100", 1, "none"),
        ("llama-70b", "a100", 8, "int4"),
        ("mixtral-8x7b", "l40s", 4, "fp8"),
        ("deepseek-v3", "h200", 8, "none"),
    )
]


@given(
    st.sampled_from(LAWS),
    st.integers(0, 512),
    st.integers(0, 1_000_000),
    st.integers(0, 16384),
    st.integers(0, 100_000),
    st.integers(1, 64),
)
def test_the_parts_of_a_step_sum_to_it(
    law: steplaw.StepLaw, batch: int, context: int, prefill: int, cached: int, prompts: int
) -> None:
    step = (batch, context, prefill, cached, prompts)
    assert stepparts.of_step(law, *step).total_s == pytest.approx(law.step_s(*step), rel=1e-12)


@given(st.sampled_from(LAWS), st.integers(1, 512), st.integers(1, 4096))
def test_no_part_is_negative(law: steplaw.StepLaw, batch: int, each: int) -> None:
    assert min(stepparts.of_step(law, batch, batch * each).by_name().values()) >= 0


def test_one_gpu_reduces_nothing() -> None:
    assert stepparts.of_step(LAWS[0], 8, 4000).all_reduce_s == 0.0
    assert stepparts.of_step(LAWS[1], 8, 4000).all_reduce_s > 0.0


def test_an_idle_step_has_no_parts() -> None:
    assert stepparts.of_step(LAWS[0], 0, 0).total_s == 0.0
