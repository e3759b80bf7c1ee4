"""Models: published totals to the byte, names, shapes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from modelserve.catalog import models

ALL = models.all_models()
EIGHT_B = "meta-llama/Llama-3.1-8B-Instruct"


def test_the_catalogue_has_40_models() -> None:
    assert len(ALL) == 40


@pytest.mark.parametrize(
    ("name", "quantization", "n_bytes"),
    [
        pytest.param(EIGHT_B, "none", 16_060_522_496, id="8b-published"),
        pytest.param("meta-llama/Llama-3.1-70B-Instruct", "none", 141_107_412_992, id="70b"),
        pytest.param(EIGHT_B, "fp8", 9_081_200_640, id="8b-fp8"),
        pytest.param("meta-llama/Llama-3.1-70B-Instruct", "int4", 40_569_946_112, id="70b-int4"),
        pytest.param("Qwen/Qwen2.5-7B-Instruct", "none", 15_231_233_024, id="qwen-7b-published"),
    ],
)
def test_weights_are_as_published(name: str, quantization: str, n_bytes: int) -> None:
    assert models.find(name).weight_bytes(quantization) == n_bytes


@pytest.mark.parametrize(
    "name",
    [
        EIGHT_B.upper(),
        "llama-3.1-8b-instruct",
        "llama-3.1-8b",
        "Llama-8B",
        " meta-llama/Llama-3.1-8B ",
        "/models/Llama-3.1-8B-Instruct",
        "unsloth/Llama-3.1-8B-Instruct",
    ],
)
def test_any_known_spelling_finds_the_model(name: str) -> None:
    assert models.find(name).weight_bytes() == 16_060_522_496


def test_a_mirror_keeps_the_name_it_was_asked_for() -> None:
    assert models.find("unsloth/Llama-3.1-8B-Instruct").name == "unsloth/Llama-3.1-8B-Instruct"
    assert models.find("meta-llama/meta-llama-3.1-8b").name == "meta-llama/Meta-Llama-3.1-8B"
    assert models.find("LLAMA-8B").name == EIGHT_B


def test_an_unknown_model_comes_with_near_names() -> None:
    with pytest.raises(errors.UnknownName, match=r"unknown model 'lama-3.1-8b'; did you mean"):
        models.find("lama-3.1-8b")


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.short_name)
def test_a_step_never_reads_more_than_the_weights(model: models.Model) -> None:
    for quantization in ("none", "fp8", "int4"):
        read = [model.read_bytes_per_step(quantization, batch) for batch in (1, 8, 1024)]
        assert 0 < read[0] <= read[1] <= read[2] <= model.weight_bytes(quantization)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.short_name)
def test_smaller_formats_weigh_no_more(model: models.Model) -> None:
    assert model.weight_bytes("int4") <= model.weight_bytes("fp8") <= model.weight_bytes("none")


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.short_name)
def test_one_sequence_reads_what_the_facts_say(model: models.Model) -> None:
    assert model.read_bytes_per_step("none", 1) == pytest.approx(model.read_bytes_batch_1)


def test_mixtral_reads_two_experts_of_eight_alone_and_nearly_all_in_a_batch() -> None:
    mixtral = models.find("mixtral-8x7b")
    assert mixtral.read_bytes_per_step("none", 1) == 25_497_706_496
    assert mixtral.read_bytes_per_step("none", 32) > 0.99 * (93_405_585_408 - 262_144_000)


def test_kv_of_a_sliding_window_grows_slower_beyond_it() -> None:
    gemma = models.find("google/gemma-2-9b-it")
    assert gemma.kv_bytes(4096) == 4096 * 344_064
    assert gemma.kv_bytes(4097) - gemma.kv_bytes(4096) == 172_032


def test_a_latent_cache_is_not_divided_over_gpus() -> None:
    assert models.find("deepseek-v3").kv_shards(8) == 1
    assert models.find(EIGHT_B).kv_shards(8) == 8
    assert models.find("Qwen/Qwen2.5-7B-Instruct").kv_shards(8) == 4


def test_every_number_of_an_entry_names_a_source() -> None:
    figures = {figure.path: figure for figure in models.sources("llama-8b")}
    assert figures["checkpoint_bytes.none"].value == 16_060_522_496
    assert "published totals" in figures["checkpoint_bytes.none"].source_text


# A shape is a dense model with a gated feed-forward part; OPT has none.
GATED = [model for model in ALL if model.experts is None and model.family != "opt"]


@pytest.mark.parametrize("model", GATED, ids=lambda model: model.short_name)
def test_a_shape_says_what_the_catalogue_says(model: models.Model) -> None:
    again = models.from_shape(model.name, model.to_shape())
    assert again.weight_bytes() == pytest.approx(model.weight_bytes(), rel=0.001)
    assert again.weight_bytes("fp8") == pytest.approx(model.weight_bytes("fp8"), rel=0.02)
    assert again.kv_bytes_per_token == model.kv_bytes_per_token


def test_parameters_left_out_are_summed_from_the_parts() -> None:
    shape = models.find(EIGHT_B).to_shape()
    del shape["parameters"]
    model = models.from_shape("mine/model", shape)
    assert model.parameters == 8_030_261_248
    assert not model.in_catalogue


def test_the_width_left_out_is_what_parameters_leave() -> None:
    shape = models.find(EIGHT_B).to_shape()
    del shape["intermediate"]
    assert models.from_shape("mine/model", shape).intermediate == 14_336


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        pytest.param({}, "lacks layers and hidden", id="empty"),
        pytest.param({"layers": 2, "hidden": 1.5}, "must be a whole number", id="fraction"),
        pytest.param({"layers": 0, "hidden": 8}, "must be at least 1", id="zero"),
        pytest.param(
            {"layers": 2, "hidden": 64, "heads": 2, "kvHeads": 4}, "at most heads", id="kv-heads"
        ),
    ],
)
def test_a_shape_that_says_too_little_is_refused(shape: dict[str, object], sentence: str) -> None:
    with pytest.raises(errors.InputError, match=sentence):
        models.from_shape("mine/model", shape)


@given(st.integers(1, 100), st.integers(64, 16384), st.booleans())
def test_the_shape_of_a_custom_model_reads_back(layers: int, hidden: int, tied: bool) -> None:
    model = models.from_shape(
        "a/b", {"layers": layers, "hidden": hidden, "tiedEmbeddings": tied, "vocab": 1000}
    )
    again = models.from_shape("a/b", model.to_shape())
    assert dataclasses.asdict(again) == dataclasses.asdict(model)
