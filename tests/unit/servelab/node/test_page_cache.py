"""Weights that a node has read before are read from its memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from modelserve.catalog import gpus
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import launch
from servelab.node import figures
from servelab.node.machines import links
from servelab.timing import routes

GPU = gpus.find("h100-sxm")
RATES = nodefacts.node_rates({})
GB = 1_000_000_000


def read(
    model: str, *, loader: str = "default", storage: str = "nvme", tp: int = 1
) -> routes.Route:
    """The weight read of a vLLM pod, as planned."""
    args = ["--model", model, "--max-model-len=4096", f"--tensor-parallel-size={tp}"]
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.33.0", "args": args}
    annotations = {"modelserve.dev/loader": loader, "modelserve.dev/storage-class": storage}
    found = launch.parse(container, annotations, GPU)
    assert found is not None
    cold, warm = (
        routes.weights(coldstart.weights(found, GPU, RATES, warm=warm), "n", "nvme", connections=tp)
        for warm in (False, True)
    )
    kept = coldstart.page_cacheable(found)
    return routes.WeightRead.of(cold, nodefacts.weights_name(found), warm if kept else None)


SMALL, OTHER = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct"


@dataclass
class Node:
    """A node with so much memory for its page cache."""

    room_bytes: int = 1000 * GB
    now_s: float = 0.0
    told: list[Mapping[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links = links.Links().of("n")
        self.links.remember(lambda: self.room_bytes, self._note, {})

    def _note(self) -> None:
        self.told.append(self.links.warm)

    def load(self, route: routes.Route, until: float = 1.0) -> float:
        """Read it up to that share of the time it takes, then go on; returns those seconds."""
        self.links.learn(route.links)
        self.links.start("n/load/p", route.work, self.now_s)
        took_s = self.links.ends_at_s("n/load/p") - self.now_s
        self.now_s += took_s * until
        self.links.stop("n/load/p", self.now_s)
        return took_s


def test_a_second_read_is_memorys() -> None:
    node, route = Node(), read(SMALL)
    assert node.load(route) == pytest.approx(route.work.duration_s)
    assert isinstance(route.work, routes.WeightRead)
    assert route.work.warm is not None
    assert node.load(route) == pytest.approx(route.work.warm.duration_s)
    assert node.told == [{f"{SMALL}@none": 16_060_522_496}]


def test_other_weights_drive_them_out() -> None:
    node = Node(room_bytes=20 * GB)
    first_s = node.load(read(SMALL))
    node.load(read(OTHER))
    assert list(node.links.warm)[-1] == f"{OTHER}@none"
    assert node.load(read(SMALL)) == pytest.approx(first_s)


def test_weights_larger_than_the_memory_never_stay() -> None:
    node = Node(room_bytes=10 * GB)
    assert node.load(read(SMALL)) == node.load(read(SMALL))


def test_pods_that_take_the_memory_take_the_cache() -> None:
    node = Node()
    cold_s = node.load(read(SMALL))
    node.room_bytes = GB
    assert node.load(read(SMALL)) == pytest.approx(cold_s)


def test_a_read_that_was_broken_off_leaves_what_it_read() -> None:
    node = Node()
    cold_s = node.load(read(SMALL), until=0.5)
    assert list(node.links.warm.values()) == [pytest.approx(8.03e9, rel=0.01)]
    assert node.load(read(SMALL)) == pytest.approx(cold_s)


def test_objects_leave_nothing_in_the_page_cache() -> None:
    node = Node()
    cold_s = node.load(read(SMALL, storage="s3", loader="streaming"))
    assert node.load(read(SMALL, storage="s3", loader="streaming")) == pytest.approx(cold_s)
    assert not node.told


def test_all_ranks_together_read_the_checkpoint_once_each_its_shard() -> None:
    one, eight = (read(SMALL, tp=tp).work for tp in (1, 8))
    assert one.size_bytes == eight.size_bytes
    assert eight.stages[0].connections == 8
    assert eight.duration_s == pytest.approx(one.duration_s * 1.1 / 4.3, rel=0.01)


def test_the_operator_reads_the_same_from_the_nodes_annotation() -> None:
    words = {"modelserve.dev/warm-weights": f'{{"{SMALL}@none": 16060522496}}'}
    container = {"image": "vllm/vllm-openai:v0.33.0", "args": ["--model", SMALL]}
    found = launch.parse(container, {}, GPU)
    assert found is not None
    assert nodefacts.is_warm(found, words)
    assert not nodefacts.is_warm(found, {})
    assert not nodefacts.is_warm(found, {"modelserve.dev/warm-weights": "[broken"})


def test_metrics_tell_what_is_on_its_way_and_how_fast() -> None:
    node, numbers, route = Node(), figures.Figures(), read(SMALL)
    node.links.learn(route.links)
    node.links.start("n/load/p", route.work, 0.0)
    numbers.moving(node.links.under_way(node.links.ends_at_s("n/load/p") / 2))
    lines = numbers.render().decode().splitlines()
    assert 'servelab_transfers{kind="load"} 1.0' in lines
    assert 'servelab_transfer_bytes_per_second{kind="load"} 1.1e+09' in lines
    assert 'servelab_transfers{kind="pull"} 0.0' in lines
