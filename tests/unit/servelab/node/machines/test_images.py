"""The image store of a node and its queue of pulls."""

import pytest

from modelserve.catalog import layers
from modelserve.decide import coldstart, nodefacts
from servelab.node.machines import images, links
from servelab.timing import caches, routes, transfers

WORK = transfers.Work(60.0, 9e9)


def store(*, serialize: bool = True) -> images.NodeImages:
    return images.NodeImages(transfers.Alone(), "n-0", serialize=serialize, cached_s=0.5)


def test_serialised_pulls_wait_their_turn() -> None:
    node = store()
    node.pull("p/1", "a:1", WORK, 0.0)
    node.pull("p/2", "b:1", WORK, 10.0)
    assert node.state("p/2") == images.PullState(10.0, 60.0, 120.0, 9_000_000_000)


def test_parallel_pulls_do_not_wait() -> None:
    node = store(serialize=False)
    node.pull("p/1", "a:1", WORK, 0.0)
    node.pull("p/2", "b:1", WORK, 10.0)
    assert node.state("p/2").ends_s == 70.0


def test_a_pull_that_waits_its_turn_is_put_off_with_the_one_before() -> None:
    moves = links.Links().of("n-0")
    node = images.NodeImages(moves, "n-0")
    moves.learn({"net": 1e9})
    work = transfers.Work(10.0, 1e10, (transfers.Stage(1e10, ("net",)),))
    node.pull("p/1", "a:1", work, 0.0)
    node.pull("p/2", "b:1", work, 1.0)
    assert node.state("p/2") == images.PullState(1.0, 10.0, 20.0, 10**10)
    moves.start("n-0/load/x", work, 5.0)
    # From 5 s on the pulls have half of the link, until the load ends at 25 s.
    assert node.state("p/1").ends_s == 15.0
    assert node.state("p/2") == images.PullState(1.0, 15.0, 30.0, 10**10)


def test_the_queue_goes_on_where_a_finished_pull_left_it() -> None:
    node = images.NodeImages(links.Links().of("n-0"), "n-0")
    node.pull("p/1", "a:1", WORK, 0.0)
    node.pull("p/2", "b:1", WORK, 10.0)
    node.finish("p/1")
    node.pull("p/3", "c:1", WORK, 20.0)
    assert [node.state(key).begun_s for key in ("p/2", "p/3")] == [60.0, 120.0]


@pytest.mark.parametrize("serialize", [True, False])
def test_the_same_image_is_moved_once(serialize: bool) -> None:
    node = store(serialize=serialize)
    node.pull("p/1", "a:1", WORK, 0.0)
    node.pull("p/2", "a:1", WORK, 10.0)
    assert node.state("p/2").ends_s == 60.5


def test_a_finished_pull_leaves_its_image() -> None:
    node = store()
    node.pull("p/1", "a:1", WORK, 0.0)
    assert not node.present("a:1")
    node.finish("p/1")
    assert node.present("docker.io/library/a:1")


def test_a_pull_nobody_waits_for_is_taken_in_when_it_has_ended() -> None:
    node = store()
    node.pull("p/1", "a:1", WORK, 0.0)
    node.abandon("p/1")
    assert not node.settle(59.0)
    assert node.settle(60.0)
    assert node.present("a:1")


def test_the_listing_restores_the_store() -> None:
    node, again = store(), store()
    node.add("vllm/vllm-openai:v1", 9)
    again.restore(node.listing())
    assert again.listing() == node.listing()
    assert again.present("vllm/vllm-openai:v1")


def test_the_listing_is_capped_at_the_largest() -> None:
    node = store()
    for size in range(60):
        node.add(f"i{size}:1", size)
    assert len(node.listing()) == 50
    assert node.listing()[0]["sizeBytes"] == 59


RATES = nodefacts.node_rates({"modelserve.dev/layer-bandwidth": "1GB/s"})
SIZE = 8_900_000_000
BASE = 2_800_000_000


def image(tag: str) -> tuple[str, routes.ImagePull]:
    name = f"vllm/vllm-openai:{tag}"
    return name, routes.ImagePull.of(layers.of(name, SIZE), RATES, "n-0")[0]


def moved(node: images.NodeImages, key: str) -> float:
    return node.progress(key, 0.0).size_bytes


@pytest.mark.parametrize("serialize", [True, False])
def test_a_second_version_fetches_only_what_the_first_lacks(serialize: bool) -> None:
    node = store(serialize=serialize)
    node.pull("p/1", *image("v1"), 0.0)
    node.pull("p/2", *image("v2"), 0.0)
    assert (moved(node, "p/1"), moved(node, "p/2")) == (SIZE, SIZE - BASE)
    assert node.state("p/2").size_bytes == SIZE


def test_the_prediction_for_a_node_with_another_version_is_what_the_pull_takes() -> None:
    node = store()
    node.add("vllm/vllm-openai:v1", SIZE)
    there = nodefacts.listed_layers(node.listing())
    missing = layers.missing(layers.of("vllm/vllm-openai:v2", SIZE), there)
    node.pull("p/2", *image("v2"), 0.0)
    planned = coldstart.pull_of(missing, RATES, SIZE)
    assert node.state("p/2").ends_s == pytest.approx(planned.duration_s)


def test_an_image_is_there_once_the_layers_fetched_for_another_are() -> None:
    node = store(serialize=False)
    node.pull("p/1", *image("v1"), 0.0)
    name, work = image("v2")
    node.pull("p/2", name, work, 0.0)
    first_s = node.state("p/1").ends_s
    assert node.state("p/2").ends_s == first_s > work.only(work.layers[4:]).duration_s
    node.finish("p/1")
    assert node.finish("p/2").ends_s == first_s


def test_images_go_when_the_disk_is_full_but_not_those_in_use() -> None:
    policy = caches.Policy()
    node = images.NodeImages(transfers.Alone(), "n-0", disk_bytes=10**9, policy=policy)
    node.add("a:1", 200_000_000)
    node.add("b:1", 200_000_000)
    assert node.collect(["docker.io/library/a:1"], 300.0).gone == ("docker.io/library/b:1",)
    assert node.present("a:1")
    assert not node.collect([], 300.0).gone
