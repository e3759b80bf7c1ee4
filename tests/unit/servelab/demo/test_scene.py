"""Scenes and series are read off what the watches told."""

from typing import Any

from modelserve import ports
from modelserve.api import names
from modelserve.testing.apiserver import MemoryCluster
from servelab.demo import examples, scene
from servelab.trial import eyes


class Clock:
    """Stands still until it is moved; seconds are real and emulated alike."""

    scale = 1.0

    def __init__(self) -> None:
        self.at_s = 100.0

    def now_s(self) -> float:
        return self.at_s

    def real_s(self) -> float:
        return self.at_s

    def wall_s(self) -> float:
        return self.at_s

    async def sleep_real(self, seconds: float) -> None:
        self.at_s += seconds


def event(change: ports.Change, name: str, **meta: Any) -> ports.WatchEvent:
    labels = {names.LABEL_MODELSERVE: "m"}
    metadata = {"name": name, "namespace": "default", "labels": labels, **meta}
    return ports.WatchEvent(change, {"metadata": metadata, "status": {"phase": "Running"}})


async def test_the_series_has_a_point_for_each_change_of_the_count() -> None:
    watched, clock = eyes.Eyes(MemoryCluster()), Clock()
    series = scene.Series(watched, "m", clock)
    series.begin()
    for at_s, seen in (
        (110.0, event(ports.Change.ADDED, "a")),
        (115.0, event(ports.Change.MODIFIED, "a")),
        (120.0, event(ports.Change.ADDED, "b")),
        (130.0, event(ports.Change.MODIFIED, "a", deletionTimestamp="now")),
    ):
        clock.at_s = at_s
        watched.pods.handle(seen)
    assert series.since(100.0, 2.0) == [(0.0, 0.0), (20.0, 1.0), (40.0, 2.0), (60.0, 1.0)]


async def test_a_scene_counts_pods_by_what_they_do() -> None:
    watched = eyes.Eyes(MemoryCluster())
    watched.pods.handle(event(ports.Change.ADDED, "a"))
    watched.pods.handle(event(ports.Change.ADDED, "b", deletionTimestamp="now"))
    seen = scene.look(watched, "m")
    assert (seen["ready"], seen["starting"], seen["leaving"], seen["held"]) == (0, 1, 1, 0)


async def test_examples_are_applied_where_they_belong() -> None:
    cluster = MemoryCluster()
    for name in ("gpu-pool.yaml", "llama-8b-small-batch.yaml"):
        await examples.apply(cluster, examples.load(name), "here")
    assert (await cluster.get(ports.GPUPOOLS, None, "dgx"))["spec"]["gpusPerNode"] == 8
    assert await cluster.get(ports.MODELSERVES, "here", "llama-8b")
