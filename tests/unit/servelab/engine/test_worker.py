"""What a worker process keeps of engines that have ended."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from modelserve import testing
from servelab.engine import server, worker

CONTAINER = {
    "name": "server",
    "image": "vllm/vllm-openai:v0.33.0",
    "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"],
}
GPU = "NVIDIA-H100-80GB-HBM3"


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def one_life(engines: worker.Worker, uid: str, end: str) -> None:
    reserved = {"container": CONTAINER, "annotations": {}, "gpu": GPU, "seed": 1}
    for op, given in (("reserve", reserved), ("serve", {})):
        await engines.handle({"id": 1, "op": op, "uid": uid, **given})
    await engines.handle({"id": 2, "op": end, "uid": uid, "grace_real_s": 0.0})
    await testing.settle()


def servers() -> int:
    return sum(isinstance(each, server.EngineServer) for each in gc.get_objects())


@pytest.mark.parametrize("end", ["kill", "drain"])
async def test_engines_that_ended_are_freed_though_the_collector_is_away(
    uncollected: None, end: str
) -> None:
    engines = worker.Worker(1.0, "127.0.0.1", lambda message: None)
    before = servers()
    for n in range(worker.COLLECTED_TOGETHER + 5):
        await one_life(engines, f"pod-{n}", end)
    assert 0 < servers() - before <= 5


async def test_an_engine_that_is_killed_as_it_begins_to_listen_leaves_nothing() -> None:
    gc.collect()  # What other tests left is not counted.
    engines, before = worker.Worker(1.0, "127.0.0.1", lambda message: None), servers()
    reserved = {"container": CONTAINER, "annotations": {}, "gpu": GPU, "seed": 1}
    for n in range(3):
        command = {"id": 1, "uid": f"pod-{n}"}
        await engines.handle({**command, "op": "reserve", **reserved})
        # Both come in one breath.
        both = (engines.handle({**command, "op": op}) for op in ("serve", "kill"))
        await asyncio.gather(*map(asyncio.create_task, both))
    await testing.settle()
    gc.collect()
    assert servers() == before


def test_engines_of_one_deployment_are_worked_out_once_and_seeded_each() -> None:
    mounts = ({"volumeMounts": [{"name": f"kube-api-access-{n}"}]} for n in (1, 2))
    one, two = (
        worker.spec_of({**CONTAINER, **mount}, {}, GPU, seed) for seed, mount in enumerate(mounts)
    )
    assert (one.seed, two.seed, one.config is two.config) == (0, 1, True)
