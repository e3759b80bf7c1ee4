"""A model from its config.json: the numbers of the catalogue, and what is refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from modelserve.catalog import models

ALL = models.all_models()
DENSE = [
    model
    for model in ALL
    if model.experts is None and model.family != "opt" and model.window_tokens is None
]
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
DEEPSEEK = {
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "vocab_size": 129280,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "quantization_config": {"quant_method": "fp8"},
}


def test_llama_8b_comes_out_to_the_byte() -> None:
    model, known = models.from_config(LLAMA), models.find("llama-8b")
    assert model.parameters == known.parameters
    assert model.read_bytes_batch_1 == known.read_bytes_batch_1
    assert model.kv_bytes_per_token == known.kv_bytes_per_token
    for quantization in ("none", "fp8", "int4"):
        assert model.weight_bytes(quantization) == known.weight_bytes(quantization)


@pytest.mark.parametrize("model", DENSE, ids=lambda model: model.short_name)
def test_a_dense_config_says_what_the_catalogue_says(model: models.Model) -> None:
    again = models.from_config(
        {
            "num_hidden_layers": model.layers,
            "hidden_size": model.hidden,
            "intermediate_size": model.intermediate,
            "num_attention_heads": model.heads,
            "num_key_value_heads": model.kv_heads,
            "head_dim": model.head_dim,
            "vocab_size": model.vocab,
            "tie_word_embeddings": model.tied_embeddings,
        }
    )
    assert again.parameters == pytest.approx(model.parameters, rel=0.001)
    assert again.kv_bytes_per_token == model.kv_bytes_per_token


def test_experts_and_a_latent_cache_are_counted() -> None:
    model, known = models.from_config(DEEPSEEK), models.find("deepseek-v3")
    assert model.parameters == pytest.approx(known.parameters, rel=1e-5)
    assert model.active_parameters == pytest.approx(known.active_parameters, rel=1e-4)
    assert model.kv_bytes_per_token == known.kv_bytes_per_token
    assert model.latent_kv
    assert model.read_bytes_per_step("none", 1) == pytest.approx(model.read_bytes_batch_1)


def test_mixtral_reads_two_of_its_eight_experts() -> None:
    config = {**LLAMA, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2}
    model, known = models.from_config(config), models.find("mixtral-8x7b")
    assert model.parameters == pytest.approx(known.parameters, rel=1e-4)
    assert model.read_bytes_batch_1 == pytest.approx(known.read_bytes_batch_1, rel=1e-3)


def test_a_quantised_checkpoint_is_not_quantised_again() -> None:
    awq = {**LLAMA, "quantization_config": {"quant_method": "awq", "bits": 4}}
    model = models.from_config(awq)
    assert model.weight_bytes() == models.find("llama-8b").weight_bytes("int4")
    assert model.weight_bytes("fp8") == model.weight_bytes()


def test_the_language_part_of_a_config_is_read() -> None:
    assert models.from_config({"text_config": LLAMA}).layers == 32


@pytest.mark.parametrize(
    ("more", "window", "beyond"),
    [
        pytest.param({}, 4096, 0, id="every-layer"),
        pytest.param({"use_sliding_window": False}, None, 131072, id="switched-off"),
        pytest.param(
            {"layer_types": ["sliding_attention", "full_attention"] * 16}, 4096, 65536, id="half"
        ),
        pytest.param({"sliding_window_pattern": 4}, 4096, 32768, id="pattern"),
    ],
)
def test_sliding_windows_are_read(more: dict[str, object], window: int, beyond: int) -> None:
    model = models.from_config({**LLAMA, "sliding_window": 4096, **more})
    assert (model.window_tokens, model.kv_bytes_per_token_beyond_window) == (window, beyond)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param({}, "lacks num_hidden_layers", id="empty"),
        pytest.param({**LLAMA, "hidden_size": "big"}, "whole number from 1 on", id="word"),
        pytest.param({**LLAMA, "num_attention_heads": 0}, "whole number from 1 on", id="zero"),
        pytest.param({**LLAMA, "num_key_value_heads": 64}, "at most 32", id="kv-heads"),
        pytest.param(
            {**LLAMA, "num_experts": 4, "num_experts_per_tok": 8}, "at most 4", id="experts"
        ),
    ],
)
def test_a_config_that_cannot_be_is_refused(config: dict[str, object], sentence: str) -> None:
    with pytest.raises(errors.InputError, match=sentence):
        models.from_config(config)


@given(st.dictionaries(st.sampled_from([*LLAMA, *DEEPSEEK]), st.integers(-1, 300)))
def test_any_numbers_give_a_model_or_one_sentence(config: dict[str, object]) -> None:
    with contextlib.suppress(errors.InputError):
        model = models.from_config({**LLAMA, **config})
        assert 0 <= model.read_bytes_per_step("none", 1) <= model.weight_bytes()
