"""Image layers and their collection, and the page cache."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from modelserve.catalog import layers
from servelab.timing import caches

DISK_BYTES = 1000
POLICY = caches.Policy()
OLD_S = 1000.0


def layer(digest: str, size: int = 100) -> layers.Layer:
    return layers.Layer(digest, size // 2, size)


CUDA = layer("cuda", 300)


def store(*images: str, size: int = 100, other: int = 0) -> caches.Images:
    """Images a layer each, used in their order."""
    found = caches.Images(DISK_BYTES, other)
    for place, name in enumerate(images):
        found = caches.keep(found, name, (layer(name, size),), float(place))
    return found


def test_shared_layers_take_the_disk_once() -> None:
    images = caches.keep(caches.Images(DISK_BYTES, 50), "vllm:1", (CUDA, layer("v1")), 0.0)
    images = caches.keep(images, "vllm:2", (CUDA, layer("v2")), 0.0)
    assert images.used_bytes == 50 + 300 + 100 + 100
    assert images.by_name["vllm:2"].size_bytes == 400


@pytest.mark.parametrize(("other", "gone"), [(440, ()), (441, ("a",)), (549, ("a", "b"))])
def test_collection_begins_at_the_high_threshold_and_ends_at_the_low(
    other: int, gone: tuple[str, ...]
) -> None:
    images = store("a", "b", "c", "d", other=other)
    swept = caches.collect(images, (), OLD_S, POLICY)
    assert swept.gone == gone
    assert not swept.failed


def test_the_least_recently_used_go_first_and_used_ones_stay() -> None:
    images = caches.use(store("a", "b", "c", "d", other=549), ["a"], 500.0)
    assert caches.collect(images, ["b"], OLD_S, POLICY).gone == ("c", "d")


def test_images_younger_than_two_minutes_stay() -> None:
    swept = caches.collect(store("a", "b", other=800), (), 121.0, POLICY)
    assert swept.gone == ("a", "b")
    early = caches.collect(store("a", "b", other=800), (), 120.5, POLICY)
    assert early.gone == ("a",)


def test_too_little_to_remove_is_a_failure() -> None:
    swept = caches.collect(store("a", other=800), (), OLD_S, POLICY)
    assert (swept.wanted_bytes, swept.freed_bytes, swept.failed) == (100, 100, False)
    assert caches.collect(store("a", other=850), (), OLD_S, POLICY).failed


def test_a_shared_layer_counts_as_freed_although_it_stays() -> None:
    images = caches.keep(caches.Images(DISK_BYTES, 350), "vllm:1", (CUDA, layer("v1")), 0.0)
    images = caches.keep(images, "vllm:2", (CUDA, layer("v2")), 1.0)
    swept = caches.collect(images, (), OLD_S, POLICY)
    assert (swept.gone, swept.freed_bytes) == (("vllm:1",), 400)
    assert swept.images.used_bytes == images.used_bytes - 100


def test_images_unused_for_too_long_go_with_room_to_spare() -> None:
    policy = caches.Policy(max_age_s=600.0)
    assert caches.collect(store("a", "b"), ["b"], OLD_S, policy).gone == ("a",)


@given(
    st.lists(st.integers(1, 200), max_size=8),
    st.integers(0, 900),
    st.sets(st.integers(0, 7)),
)
def test_collection_keeps_what_is_used_and_reaches_the_low_threshold_or_fails(
    sizes: list[int], other: int, used: set[int]
) -> None:
    images = caches.Images(DISK_BYTES, other)
    for place, size in enumerate(sizes):
        images = caches.keep(images, str(place), (layer(str(place), size),), 0.0)
    assume(images.used_bytes <= DISK_BYTES)
    in_use = [str(place) for place in used]
    swept = caches.collect(images, in_use, OLD_S, POLICY)
    assert not set(swept.gone) & set(in_use)
    assert {*swept.gone, *swept.images.by_name} == set(images.by_name)
    assert swept.failed or swept.images.used_percent < POLICY.high_percent
    again = caches.collect(swept.images, in_use, OLD_S, POLICY)
    assert not again.gone


def test_memory_that_pods_leave_is_the_page_cache() -> None:
    assert caches.room_bytes(1000, 300, 100) == 600
    assert caches.room_bytes(1000, 1200) == 0


def test_a_file_read_before_is_found_in_memory() -> None:
    cached = caches.read(caches.Cached(), "llama", 140, 500)
    assert cached.by_file == {"llama": 140}


def test_a_file_larger_than_the_cache_is_never_there_as_a_whole() -> None:
    cached = caches.read(caches.Cached(), "llama", 140, 100)
    assert cached.by_file == {"llama": 100}


def test_the_least_recently_read_makes_room() -> None:
    cached = caches.read(caches.read(caches.Cached(), "a", 60, 100), "b", 30, 100)
    cached = caches.read(cached, "c", 40, 100)
    assert cached.by_file == {"a": 30, "b": 30, "c": 40}
    assert caches.read(cached, "a", 60, 100).by_file == {"c": 40, "a": 60}


def test_pods_that_take_memory_push_pages_out() -> None:
    cached = caches.read(caches.read(caches.Cached(), "a", 60, 100), "b", 30, 100)
    assert caches.shrink(cached, 50).by_file == {"a": 20, "b": 30}
    assert caches.drop(cached, "a").by_file == {"b": 30}


reads = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 150), st.integers(0, 100)), max_size=12
)


@given(reads)
def test_the_page_cache_never_holds_more_than_its_room(wanted: list[tuple[str, int, int]]) -> None:
    cached = caches.Cached()
    for file, size, room in wanted:
        cached = caches.read(cached, file, size, room)
        assert cached.used_bytes <= room
        assert cached.by_file.get(file, 0) == min(size, room)
