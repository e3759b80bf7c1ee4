"""The emulator's own loops."""

import asyncio
import contextlib
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest

from modelserve import ports, testing
from modelserve.testing import apiserver, census
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.kubelet import runtime
from servelab.node.machines import heartbeat
from servelab.node.pods import runner
from servelab.node.pools import registration

TURNS = 10_000
Pod = weakref.ref[runner.PodRunner]
POOL = {"metadata": {"name": "dgx"}, "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}}


def broken(call: apiserver.Call) -> None:
    if call.verb == "create" and call.resource == ports.NODES:
        raise RuntimeError("a mistake of ours")


def emulating(cluster: testing.MemoryCluster, clock: testing.ManualClock) -> emulator.Emulator:
    kubelet, engines = registration.Kubelet("127.0.0.1", 1), pool.WorkerPool(1, 1.0)
    return emulator.Emulator(cluster, clock, engines, kubelet, figures.Figures())


@contextlib.asynccontextmanager
async def played(
    cluster: testing.MemoryCluster,
) -> AsyncIterator[tuple[testing.ManualClock, emulator.Emulator]]:
    """A pool's node stands."""
    clock = testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    async with emulating(cluster, clock) as kept:
        await clock.advance(2)
        yield clock, kept


async def test_a_loop_that_dies_ends_the_process_instead_of_leaving_nodes_unkept() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    cluster.before_call = broken
    async with emulating(cluster, clock) as started:
        running = asyncio.ensure_future(started.run())
        await clock.advance(1)
        with pytest.raises(RuntimeError, match="a mistake of ours"):
            await running


async def test_a_resource_slice_that_was_deleted_comes_back_with_the_nodes_status() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, _):
        await cluster.patch(ports.GPUPOOLS, None, "dgx", {"spec": {"devices": "DRA"}})
        await clock.advance(2)
        await cluster.delete(ports.RESOURCE_SLICES, None, "dgx-0-gpu.nvidia.com")
        await clock.advance(310)
        assert await cluster.get(ports.RESOURCE_SLICES, None, "dgx-0-gpu.nvidia.com")


async def test_a_pod_on_a_pool_that_became_impossible_ends_nothing() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, kept):
        running = asyncio.ensure_future(kept.run())
        mig = {"strategy": "mixed", "profiles": {"1g.5gb": 1}}
        await cluster.patch(ports.GPUPOOLS, None, "dgx", {"spec": {"mig": mig}})
        pod = {"nodeName": "dgx-0", "containers": [{"name": "c", "image": "a:1"}]}
        meta = {"name": "p", "namespace": "default"}
        await cluster.create(ports.PODS, "default", {"metadata": meta, "spec": pod})
        await clock.advance(310)
        assert not running.done()
        running.cancel()


async def test_a_pools_nodes_stand_and_beat() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, _):
        assert await cluster.get(ports.NODES, None, "dgx-0")
        await clock.advance(heartbeat.FIRST_AFTER_REAL_S + heartbeat.PERIOD_REAL_S)
        assert await cluster.get(ports.LEASES, heartbeat.NAMESPACE, "dgx-0")
        assert await cluster.get(ports.CSI_NODES, None, "dgx-0")


async def test_a_pool_that_goes_takes_its_nodes_and_links_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, _):
        await cluster.delete(ports.GPUPOOLS, None, "dgx")
        await clock.advance(2)
        assert (await cluster.list(ports.NODES))[0] == []
    assert not caplog.records


async def test_a_pod_removed_by_force_ends_with_a_grace_while_another_of_its_name_runs() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, kept):
        old = await placed(cluster, kept)
        await live_on(clock, [old])
        await cluster.delete(ports.PODS, "default", "p", grace_s=0)
        new = await placed(cluster, kept)
        both = [one for ref in (old, new) if (one := ref()) is not None]
        node, uids = both[0].node, [one.pod.uid for one in both]
        # As with a kubelet: all GPUs are the new one's, though the old one still runs.
        await until(lambda: uids[1] in node.given.by_pod)
        assert (len(node.given.by_pod[uids[1]]), list(node.given.by_pod)) == (8, uids[1:])
        assert running(both[0])
        await live_on(clock, [old, new])
        assert (running(both[0]), both[0].life.finished) == ([], True)
        assert running(both[1])


@pytest.mark.parametrize("policy", ["Never", "Always"])
async def test_who_follows_a_log_hears_of_its_end_and_of_nothing_after_it(policy: str) -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, kept):
        body = pod(["sh", "-c", "echo first; sleep 3"])
        body["spec"]["restartPolicy"] = policy
        await cluster.create(ports.PODS, "default", body)
        await until(lambda: bool(list(kept.served())))
        one, heard = weakref.ref(next(iter(kept.served()))), list[str | None]()
        found = one()
        assert found is not None
        log = found.journals["c"]
        log.follow(lambda line: heard.append(line.text if line else None))
        for _ in range(60):
            await live_on(clock, [one], 1)
            if None in heard:
                break
        assert heard == ["first", None]


async def test_pods_that_end_by_force_end_at_once_when_their_node_goes() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, kept):
        one = await placed(cluster, kept)
        await live_on(clock, [one])
        await cluster.delete(ports.PODS, "default", "p", grace_s=0)
        await until(lambda: not list(kept.served()))
        found = one()
        assert found is not None
        assert not found.life.finished
        await cluster.delete(ports.NODES, None, "dgx-0")
        await until(lambda: found.life.finished)


async def test_what_is_removed_on_a_lost_node_runs_on_until_it_is_back() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, kept):
        one = await placed(cluster, kept)
        await live_on(clock, [one])
        await faults(cluster, {"type": "NodeLost", "nodes": ["dgx-0"]})
        await live_on(clock, [one])
        await cluster.delete(ports.PODS, "default", "p", grace_s=0)
        await live_on(clock, [one])
        found = one()
        assert found is not None
        assert running(found)
        await faults(cluster)
        await live_on(clock, [one])
        assert found.life.finished


class LateCluster(testing.MemoryCluster):
    """It removes a pod at once, and answers so when ``answers`` is set. It keeps no status."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.told: list[bool] = []  # of each removal: whether its answer was waited for

    async def patch(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object | Sequence[ports.Object],
        *,
        content_type: str = ports.MERGE_PATCH,
        subresource: str = "",
        manager: str = "",
    ) -> ports.Object:
        return await self.get(resource, namespace, name)

    async def delete(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        await super().delete(
            resource, namespace, name, grace_s=grace_s, uid=uid, resource_version=resource_version
        )
        if uid:
            self.told.append(False)
            await self.answers.wait()
            self.told[-1] = True


async def test_the_answer_to_a_pods_removal_is_waited_for_though_the_watch_has_told_of_it() -> None:
    # A call that is cut off takes its connection along: a hundred pods, sixty handshakes.
    cluster = LateCluster()
    async with played(cluster) as (clock, kept):
        one = await placed(cluster, kept)
        await live_on(clock, [one])
        await cluster.delete(ports.PODS, "default", "p")
        await live_on(clock, [one])
        await until(lambda: not list(kept.served()))
        cluster.answers.set()
        await until(lambda: cluster.told == [True])


async def test_pods_that_come_and_go_leave_nothing_on_their_node() -> None:
    cluster = testing.MemoryCluster()
    async with played(cluster) as (clock, kept):
        node = kept.served_nodes()["dgx-0"]
        for _ in range(5):
            # Both are told in one breath: nothing of the pod has begun before its end.
            await cluster.create(ports.PODS, "default", pod(["sleep", "99"]))
            await cluster.delete(ports.PODS, "default", "p", grace_s=0)
            await clock.advance(0.5)
        one = await placed(cluster, kept)
        await live_on(clock, [one])
        await cluster.delete(ports.PODS, "default", "p", grace_s=0)
        await live_on(clock, [one])
        assert (node.given.by_pod, list(kept.served())) == ({}, [])


class Engines:
    """As a pool of workers, without any."""

    def __init__(self) -> None:
        self.left: set[str] = set()

    async def reserve(self, uid: str, *_: object) -> str:
        self.left.add(uid)
        return "127.0.0.1:1"

    async def serve(self, uid: str) -> None:
        assert uid in self.left

    async def kill(self, uid: str) -> None:
        self.left.discard(uid)


async def test_pods_and_pools_that_come_and_go_leave_nothing_behind() -> None:
    cluster, clock, engines = testing.MemoryCluster(), testing.ManualClock(), Engines()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    kubelet = registration.Kubelet("127.0.0.1", 1)
    kept = emulator.Emulator(cluster, clock, cast(Any, engines), kubelet, figures.Figures())
    left = []
    async with kept:
        for number in range(5):
            await come_and_go(cluster, clock, kept, f"p{number}")
            # Longer than a kubelet and the links remember anything.
            await clock.advance(3700)
            left.append(census.reachable(kept, apart=(cluster, clock, engines)))
    assert engines.left == set()
    # One entry more for each that went would be three.
    assert left[-1] - left[1] < 3


async def come_and_go(
    cluster: testing.MemoryCluster,
    clock: testing.ManualClock,
    kept: emulator.Emulator,
    name: str,
) -> None:
    """A pool with a slow registry, an engine and another pod on its node, and all ends."""
    slow = {"type": "SlowRegistry", "factor": 2, "durationSeconds": 5}
    rates = {"registry": {"sharedBandwidth": "4GB/s"}, "storage": {"sharedBandwidth": "4GB/s"}}
    made = {"gpu": "NVIDIA-H100-80GB-HBM3", "faults": [slow], "drain": {"noticeSeconds": 0}}
    meta = {"metadata": {"name": name}}
    await cluster.create(ports.GPUPOOLS, None, {**meta, "spec": {**made, **rates}})
    await clock.advance(2)
    serve = ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"]
    for end, command in (("engine", serve), ("plain", ["sleep", "99"])):
        body = pod(command)
        image = {"image": "vllm/vllm-openai:v0.33.0" if command is serve else "busybox:1"}
        container = {**body["spec"]["containers"][0], **image, "resources": {}}
        spec = {**body["spec"], "nodeName": f"{name}-0", "containers": [container]}
        named = {**body["metadata"], "name": f"{name}-{end}"}
        await cluster.create(ports.PODS, "default", {"metadata": named, "spec": spec})
    await until(lambda: len(list(kept.served())) == 2)
    there = [weakref.ref(found) for found in kept.served()]
    await live_on(clock, there, 60)
    for end in ("engine", "plain"):
        await cluster.delete(ports.PODS, "default", f"{name}-{end}", grace_s=0)
    await live_on(clock, there)
    await cluster.delete(ports.GPUPOOLS, None, name)
    await clock.advance(3)
    await until(lambda: list(kept.served_nodes()) == ["dgx-0"])


async def faults(cluster: testing.MemoryCluster, *listed: ports.Object) -> None:
    """What goes wrong in the pool from now on."""
    await cluster.patch(ports.GPUPOOLS, None, "dgx", {"spec": {"faults": list(listed)}})


async def placed(cluster: testing.MemoryCluster, kept: emulator.Emulator) -> Pod:
    """A pod called p with all GPUs of the node, that ignores SIGTERM."""
    made = await cluster.create(ports.PODS, "default", pod(["sleep", "99"]))
    uid = made["metadata"]["uid"]
    await until(lambda: any(found.pod.uid == uid for found in kept.served()))
    return weakref.ref(next(found for found in kept.served() if found.pod.uid == uid))


def pod(command: Sequence[str]) -> ports.Object:
    asked = {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "c", "image": "busybox:1", "command": command, "resources": asked}
    meta = {"name": "p", "namespace": "default"}
    spec = {"nodeName": "dgx-0", "terminationGracePeriodSeconds": 3, "containers": [container]}
    return {"metadata": meta, "spec": spec}


def running(pod: runner.PodRunner) -> list[runtime.Instance]:
    state = pod.life.state
    return state.cri.running(state.now_s)


async def test_pods_that_are_gone_are_freed_without_the_collector(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # A captured record of what this cluster refuses to write would keep the pod.
    caplog.set_level(logging.CRITICAL, "servelab.node.pods.writer")
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    spec = {"nodeName": "dgx-0", "containers": [{"name": "c", "image": "nginx:1"}]}
    async with emulating(cluster, clock) as kept:
        await clock.advance(2)
        meta = {"name": "p", "namespace": "default"}
        await cluster.create(ports.PODS, "default", {"metadata": meta, "spec": spec})
        await until(lambda: list(kept.served()) != [])
        await clock.advance(30)
        gc.collect()
        gc.disable()
        left = [weakref.ref(found) for found in kept.served()]
        await cluster.delete(ports.PODS, "default", "p", grace_s=0)
        try:
            await live_on(clock, left)
            await until(lambda: all(found() is None for found in left))
        finally:
            gc.enable()


async def live_on(clock: testing.ManualClock, pods: Sequence[Pod], turns: int = 20) -> None:
    """Half a second passes each turn, and those of the pods that are still there have theirs."""
    for _ in range(turns):
        await clock.advance(0.5)
        for found in pods:
            if (one := found()) is not None:
                one.moved()


async def until(met: Callable[[], bool]) -> None:
    """Whoever has something to do gets to it."""
    for _ in range(TURNS):
        if met():
            return
        await asyncio.sleep(0)
    pytest.fail(f"not within {TURNS} turns of the loop")
