"""Layers of images, and what images share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.api import spec
from modelserve.catalog import images, layers

VLLM = images.of_engine(spec.EngineType.VLLM)


def size(found: tuple[layers.Layer, ...]) -> int:
    return sum(layer.compressed_bytes for layer in found)


@given(st.sampled_from(["busybox:1", *(each.reference for each in images.all_images())]))
def test_the_layers_of_an_image_sum_up_to_it(reference: str) -> None:
    known = images.find(reference)
    whole = known.compressed_bytes if known else 10**8
    assert size(layers.of(reference, whole)) == whole


@given(st.integers(0, 10**11))
def test_an_image_of_any_size_has_layers_none_larger_than_the_largest(whole: int) -> None:
    found = layers.of(VLLM.reference, whole)
    assert size(found) == whole
    assert max(layer.compressed_bytes for layer in found) <= VLLM.largest_layer_share * whole + 1
    assert len({layer.digest for layer in found}) == len(found)


@pytest.mark.parametrize(
    "other", ["vllm/vllm-openai:v0.32.0", "ghcr.io/huggingface/text-generation-inference:3.3.5"]
)
def test_tags_and_images_on_one_base_share_it(other: str) -> None:
    there = {layer.digest for layer in layers.of(other, 8_900_000_000)}
    missing = layers.missing(layers.of(VLLM.reference, VLLM.compressed_bytes), there)
    assert size(missing) == VLLM.compressed_bytes - layers.bases()["cuda-12"].compressed_bytes


def test_a_mirror_has_the_layers_of_what_it_mirrors() -> None:
    mirrored = f"mirror.local/{VLLM.reference}"
    assert layers.of(mirrored, 8_900_000_000) == layers.of(VLLM.reference, 8_900_000_000)


def test_one_large_layer_has_one_connection_at_work() -> None:
    even = [layers.Layer(str(number), 100, 100) for number in range(9)]
    assert layers.streams(even) == 3.0
    assert layers.streams([layers.Layer("a", 950, 950), layers.Layer("b", 50, 50)]) < 1.1
