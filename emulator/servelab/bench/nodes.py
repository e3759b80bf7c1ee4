"""Bench ``nodes``: how many nodes and pods the emulator plays, on a real control plane.

The writes of the emulator are compared with those of a client that does nothing else (see
``barewriter``), in the same run: before that run the emulator is halted while the pods are made,
so that all of them are waiting for it. Both write as many statuses and events a pod, and both are
timed to the last of them.
"""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from modelserve import ports
from modelserve.api import names, timestamps
from servelab.bench import barewriter, cycles, exposition, figure, fleet
from servelab.bench.registry import Say
from servelab.cluster import local, reporting, scratch

PODS = 400
NODES = 100
STARTING = 100
BURSTS = 5
MANY = 1000
MINUTES = 1.0
SETTLE_REAL_S = 20.0
CATCH_UP_REAL_S = 5.0
LOOK_REAL_S = 0.2
# What the emulator writes for a plain pod whose image is there.
STATUSES, EVENTS = 2, 3
LEASE_PERIOD_REAL_S = 10.0
LATE_REAL_S = 1.0

# kwok 0.8 with its ``fast`` stages on two cores.
NODES_GOAL_PER_S = 334.0
FAST_GOAL_PER_S = 83.0
FULL_GOAL_PER_S = 20.0

FAST = {"kubelet": {"profile": "Fast"}}
STORAGE = {"storage": {"readBandwidth": "4GB/s"}, "registry": {"bandwidth": "200MB/s"}}
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ENGINE: Mapping[str, Any] = {
    "containers": [
        {
            "name": "server",
            "image": "vllm/vllm-openai:v0.33.0",
            "args": ["--model", MODEL, "--max-model-len", "8192"],
            "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1},
        }
    ],
    "terminationGracePeriodSeconds": 1,
}
STARTS = {names.WARM_UP_SECONDS: "5", names.IMAGE_SIZE: "400MB"}


def run(
    samples: int | None, say: Say, minutes: float = MINUTES, soak_min: float | None = None
) -> Sequence[figure.Figure]:
    """Start a cluster of its own, measure, stop it.

    ``samples``: pods of each Deployment; ``minutes``: how long the many nodes are watched;
    ``soak_min``: how long pods come and go once all that is remembered for a time is.
    """
    with scratch.directory("servelab-bench") as directory:
        with reporting.closing(reporting.for_stream()) as reporter:
            cluster = local.LocalCluster(fleet.options(directory), reporter).start()
        try:
            return asyncio.run(_measure(cluster, samples or PODS, minutes, soak_min, say))
        finally:
            cluster.stop()


async def _measure(
    cluster: local.LocalCluster, pods: int, minutes: float, soak_min: float | None, say: Say
) -> Sequence[figure.Figure]:
    async with fleet.Fleet.open(cluster) as found:
        bench = Bench(found, say)
        parts = (
            bench.nodes,
            lambda: bench.full(pods),
            lambda: bench.share(pods),
            lambda: bench.fast(pods),
            bench.phases,
            lambda: bench.soak(None if soak_min is None else soak_min * 60),
            lambda: bench.many(minutes * 60),
        )
        figures: list[figure.Figure] = []
        for part in parts:
            for each in await part():
                say(f"  {each.name}: {figure.shown(each.value, each.unit)}")
                figures.append(each)
        return figures


class Bench:
    """The measurements, one after the other."""

    def __init__(self, found: fleet.Fleet, say: Say) -> None:
        self._fleet = found
        self._say = say

    async def nodes(self) -> Sequence[figure.Figure]:
        """From an applied pool to the last of its nodes ready."""
        self._say(f"{NODES} nodes")
        begun_real_s = time.monotonic()
        await self._fleet.pool(NODES)
        took_s = max(self._fleet.nodes.values()) - begun_real_s
        return (
            figure.Figure(
                "nodes_ready_per_s", NODES / took_s, "1/s", "higher", NODES_GOAL_PER_S, NODES
            ),
        )

    async def full(self, pods: int) -> Sequence[figure.Figure]:
        """A Deployment at full fidelity, and what was written for it."""
        await self._fleet.deploy("warm", NODES)  # so that the image is on the nodes
        self._say(f"a Deployment of {pods} pods, as a kubelet runs them")
        before = _written(await self._fleet.server_metrics())
        took_s = await self._fleet.deploy("full", pods)
        await self._all_written()
        writes = _written(await self._fleet.server_metrics()) - before
        events = len(await self._events("full-"))
        await self._fleet.remove("full")
        await self._fleet.remove("warm")
        return (
            figure.Figure(
                "pods_ready_per_s_full", pods / took_s, "1/s", "higher", FULL_GOAL_PER_S, pods
            ),
            figure.Figure("writes_per_pod", writes / pods, "writes", samples=pods),
            figure.Figure("events_per_pod", events / pods, "events", samples=pods),
        )

    async def fast(self, pods: int) -> Sequence[figure.Figure]:
        """The same with one write a pod."""
        self._say(f"a Deployment of {pods} pods, one write each")
        await self._fleet.pool(NODES, **FAST)
        before = _written(await self._fleet.server_metrics())
        took_s = await self._fleet.deploy("fast", pods)
        writes = _written(await self._fleet.server_metrics()) - before
        await self._fleet.remove("fast")
        await self._fleet.pool(NODES)
        return (
            figure.Figure(
                "pods_ready_per_s_fast", pods / took_s, "1/s", "higher", FAST_GOAL_PER_S, pods
            ),
            figure.Figure("writes_per_pod_fast", writes / pods, "writes", samples=pods),
        )

    async def share(self, pods: int) -> Sequence[figure.Figure]:
        """The emulator's writes a second as a share of a bare writer's, before and after it."""
        self._say(f"writes for {pods} pods at once, and those of a client that does nothing else")
        with self._fleet.halted():
            first = await self._bare(pods, 0)
        await asyncio.sleep(CATCH_UP_REAL_S)  # it hears of those pods too
        with self._fleet.halted():
            await self._fleet.put("burst", pods, fleet.PLAIN, {})
        begun_real_s = time.monotonic()
        before = await self._fleet.server_metrics()
        await self._fleet.all_ready("burst", pods)
        await self._all_written()
        took_s = time.monotonic() - begun_real_s
        after = await self._fleet.server_metrics()
        events = _posted(after) - _posted(before)
        ours = (_written(after) - _written(before) + events) / took_s
        await self._fleet.take_away("burst")
        with self._fleet.halted():
            second = await self._bare(pods, 1)
        bare = 2 / (1 / first + 1 / second)
        self._say(f"{ours:.0f}/s of {bare:.0f}/s ({first:.0f}, {second:.0f})")
        return (
            figure.Figure("writes_share_of_bare_writer", ours / bare, "share", "higher", 0.8, pods),
        )

    async def phases(self) -> Sequence[figure.Figure]:
        """Engines that start at once: how late a phase ends, and is to be seen."""
        await self._fleet.pool(NODES, **STORAGE)
        bursts: list[tuple[figure.Figure, ...]] = []
        while len(bursts) < BURSTS:
            self._say(f"{STARTING} engines that start at once, {len(bursts) + 1} of {BURSTS}")
            bursts.append(await self._burst())
        return [figure.median(runs) for runs in zip(*bursts, strict=True)]

    async def _burst(self) -> tuple[figure.Figure, ...]:
        self._fleet.phases.clear()
        with self._fleet.halted():
            await self._fleet.put("engine", STARTING, ENGINE, STARTS)
        name = "servelab_phase_delay_seconds"
        before = exposition.buckets(self._fleet.emulator_metrics(), name)
        await self._fleet.all_ready("engine", STARTING)
        await asyncio.sleep(1.0)  # the last stamp follows the status
        after = exposition.buckets(self._fleet.emulator_metrics(), name)
        await self._fleet.take_away("engine")
        delays = exposition.between(before, after)
        late_s, ends = exposition.quantile(delays, 0.99), int(max(delays.values(), default=0))
        return (
            figure.Figure("phase_delay_p99", late_s, "s", "lower", 0.05, ends),
            figure.quantile("phase_visible_p99", list(self._fleet.phases.values()), 0.99, "s", 0.5),
        )

    async def soak(self, duration_s: float | None) -> Sequence[figure.Figure]:
        """Memory over cycles of pods that come and go, plain ones and then engines'."""
        found: list[figure.Figure] = []
        for kind in (cycles.PLAIN, cycles.engines(ENGINE)):
            self._say(cycles.told(kind, duration_s))
            found += await cycles.grown(self._fleet, kind, duration_s)
        return found

    async def many(self, duration_s: float) -> Sequence[figure.Figure]:
        """A thousand nodes at rest."""
        self._say(f"{MANY} nodes at rest for {duration_s:.0f} s")
        await self._fleet.pool(MANY)
        await asyncio.sleep(SETTLE_REAL_S)
        name = "servelab_lease_lateness_seconds"
        buckets = exposition.buckets(self._fleet.emulator_metrics(), name)
        begun_real_s, before = time.monotonic(), self._fleet.usage()
        await asyncio.sleep(duration_s)
        after, span_real_s = self._fleet.usage(), time.monotonic() - begun_real_s
        found = exposition.between(
            buckets, exposition.buckets(self._fleet.emulator_metrics(), name)
        )
        renewed = int(found[math.inf])
        late = renewed - int(found[LATE_REAL_S]) + await self._stale_leases()
        cores = (after.cpu_s - before.cpu_s) / span_real_s
        return (
            figure.Figure("idle_cores_1000_nodes", cores, "cores", "lower", 0.2),
            figure.Figure("rss_bytes_1000_nodes", after.rss_bytes, "bytes", "lower", 250e6),
            figure.Figure("late_leases", late, "leases", "lower", 0, renewed),
        )

    async def _bare(self, pods: int, number: int) -> float:
        """Writes a second of a bare writer, of what the emulator would write for such pods."""
        api = self._fleet.api
        async with barewriter.pods(api, pods, fleet.PLAIN) as made:
            statuses = [barewriter.status(at) for at in range(STATUSES)]
            events = [barewriter.event(number * 10 + at) for at in range(EVENTS)]
            return await barewriter.writes_per_s(api, made, statuses, events)

    async def _all_written(self) -> None:
        """Until the emulator has nothing more to write."""
        while True:
            if not exposition.total(self._fleet.emulator_metrics(), "servelab_writes_waiting"):
                return
            await asyncio.sleep(LOOK_REAL_S)

    async def _events(self, prefix: str) -> Sequence[ports.Object]:
        """What a kubelet said of these pods."""
        selector = "involvedObject.kind=Pod,source=kubelet"
        found, _ = await self._fleet.api.list(
            ports.EVENTS, fleet.NAMESPACE, field_selector=selector
        )
        return [each for each in found if each["involvedObject"]["name"].startswith(prefix)]

    async def _stale_leases(self) -> int:
        """Leases that were due for longer than is late."""
        leases, _ = await self._fleet.api.list(ports.LEASES, "kube-node-lease")
        oldest = time.time() - LEASE_PERIOD_REAL_S - LATE_REAL_S
        renewed = (timestamps.parse_time(each["spec"]["renewTime"]) for each in leases)
        return sum(at < oldest for at in renewed)


def _written(metrics: str) -> float:
    """Patches of pods and their statuses so far: here, the emulator alone writes those."""
    labels = {"group": "", "resource": "pods", "verb": "PATCH"}
    return exposition.total(metrics, "apiserver_request_total", labels)


def _posted(metrics: str) -> float:
    """Events in the core group so far: those of the emulator, if no controller is at work."""
    labels = {"group": "", "resource": "events"}
    posts = {**labels, "verb": "POST"}, {**labels, "verb": "PATCH"}
    return sum(exposition.total(metrics, "apiserver_request_total", each) for each in posts)
