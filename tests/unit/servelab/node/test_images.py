"""The image store of a node and its queue of pulls."""

import pytest

from servelab.node import images
from servelab.timing import transfers

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
