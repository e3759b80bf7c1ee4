"""A local cluster with the emulator alone, and what the bench ``nodes`` does with it."""

import asyncio
import contextlib
import json
import os
import signal
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from modelserve import errors, ports
from modelserve.adapters import cache, kube
from modelserve.adapters import clock as clocks
from modelserve.api import conditions, names
from servelab.bench import machine
from servelab.cluster import local, record, workloads

MANAGER = "servelab-bench"
NAMESPACE = "default"
POOL = "fleet"
CONCURRENCY = 32
LIMIT_REAL_S = 240.0
CONTAINER = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
PLAIN: Mapping[str, Any] = {"containers": [CONTAINER], "terminationGracePeriodSeconds": 1}


class Fleet:
    """The running cluster. Moments are monotonic real seconds of this process."""

    def __init__(self, cluster: local.LocalCluster, api: kube.KubeCluster) -> None:
        self.api = api
        self.ready: dict[str, float] = {}  # pods by name: when first seen ready
        self.nodes: dict[str, float] = {}  # nodes by name, the same
        self.phases: dict[tuple[str, str], float] = {}  # pod, phase: seen so long after its end
        self._pods = cache.Store(api, ports.PODS, NAMESPACE)
        self._nodes = cache.Store(api, ports.NODES)
        self._cluster = cluster
        self._changed = asyncio.Event()
        running = record.read(cluster.home.directory)
        assert running is not None
        self._pid = running.children[workloads.EMULATOR].pid

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, cluster: local.LocalCluster) -> AsyncIterator[Self]:
        """Watch it while the block runs."""
        clock = clocks.SystemClock()
        async with await kube.KubeCluster.connect(str(cluster.kubeconfig), clock=clock) as api:
            fleet = cls(cluster, api)
            stores = (fleet._pods, fleet._nodes)
            fleet._pods.on_change(fleet._pod_changed)
            fleet._nodes.on_change(fleet._node_changed)
            tasks = [asyncio.create_task(store.run()) for store in stores]
            try:
                for store in stores:
                    await store.synced.wait()
                yield fleet
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    # Orders.

    async def pool(self, nodes: int, **spec: Any) -> None:
        """Ask for so many small nodes that plain pods may run on, and wait until all are ready."""
        body = {"gpu": "NVIDIA-L4", "gpusPerNode": 1, "nodes": nodes, "taints": [], **spec}
        await self.api.apply(ports.GPUPOOLS, None, POOL, {"spec": body}, manager=MANAGER)
        await self.until(lambda: len(self.nodes) == nodes, f"{nodes} ready nodes")

    async def deploy(self, name: str, replicas: int, spec: Mapping[str, Any] = PLAIN) -> float:
        """Apply a Deployment and wait until all its pods are ready; the seconds it took."""
        labels = {"app": name}
        body = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        }
        begun_real_s = time.monotonic()
        await self.api.apply(ports.DEPLOYMENTS, NAMESPACE, name, {"spec": body}, manager=MANAGER)
        await self.all_ready(name, replicas)
        return time.monotonic() - begun_real_s

    async def remove(self, name: str) -> None:
        """Delete a Deployment, and wait until its pods are gone."""
        await self.api.delete(ports.DEPLOYMENTS, NAMESPACE, name)
        await self.gone(name)

    async def put(
        self, name: str, count: int, spec: Mapping[str, Any], annotations: Mapping[str, str]
    ) -> None:
        """Create pods that are bound already, in turns on all nodes."""
        nodes, limit = sorted(self.nodes), asyncio.Semaphore(CONCURRENCY)

        async def make(number: int) -> None:
            metadata = {
                "name": f"{name}-{number}",
                "labels": {"app": name},
                "annotations": dict(annotations),
            }
            bound = {**spec, "nodeName": nodes[number % len(nodes)]}
            async with limit:
                await self.api.create(ports.PODS, NAMESPACE, {"metadata": metadata, "spec": bound})

        await asyncio.gather(*map(make, range(count)))

    async def take_away(self, name: str) -> None:
        """Delete those pods by force, and wait until they are gone."""
        limit = asyncio.Semaphore(CONCURRENCY)

        async def remove(pod: ports.Object) -> None:
            async with limit:
                with contextlib.suppress(errors.NotFound):
                    await self.api.delete(ports.PODS, NAMESPACE, pod["metadata"]["name"], grace_s=0)

        await asyncio.gather(*map(remove, self.pods(name)))
        await self.gone(name)

    # What is to be seen.

    def pods(self, app: str) -> list[ports.Object]:
        """The pods of that label."""
        found = self._pods.items()
        return [pod for pod in found if (pod["metadata"].get("labels") or {}).get("app") == app]

    async def all_ready(self, app: str, count: int) -> None:
        def ready() -> bool:
            return sum(name.startswith(f"{app}-") for name in self.ready) >= count

        await self.until(ready, f"{count} ready pods of {app}")

    async def gone(self, app: str) -> None:
        await self.until(lambda: not self.pods(app), f"the end of {app}")

    async def until(self, met: Callable[[], bool], what: str) -> None:
        """Look at each change. ModelServeError after ``LIMIT_REAL_S``."""
        try:
            async with asyncio.timeout(LIMIT_REAL_S):
                while not met():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise errors.ModelServeError(
                f"waited {LIMIT_REAL_S:.0f} s for {what}, in vain"
            ) from None

    async def server_metrics(self) -> str:
        """What the API server counts."""
        return (await self.api.text("/metrics", {}))[1]

    def emulator_metrics(self) -> str:
        """What the emulator counts."""
        with urllib.request.urlopen(self._cluster.urls["emulatorMetrics"], timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def usage(self) -> machine.Usage:
        """Of the emulator with its engines' processes."""
        found = [machine.usage(pid) for pid in machine.family(self._pid)]
        return machine.Usage(sum(u.cpu_s for u in found), sum(u.rss_bytes for u in found))

    @contextlib.contextmanager
    def halted(self) -> Iterator[None]:
        """The emulator stands still during the block."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)

    def _pod_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        self._changed.set()
        if new is None:
            assert old is not None
            self.ready.pop(old["metadata"]["name"], None)
            return
        name = new["metadata"]["name"]
        if conditions.is_true(new, "Ready"):
            self.ready.setdefault(name, time.monotonic())
        text = (new["metadata"].get("annotations") or {}).get(names.PHASES)
        for stamp in json.loads(text)["stamps"] if text else ():
            if stamp.get("end") and (name, stamp["phase"]) not in self.phases:
                self.phases[name, stamp["phase"]] = time.time() - stamp["end"] / 1000

    def _node_changed(self, old: ports.Object | None, new: ports.Object | None) -> None:
        self._changed.set()
        if new is None:
            assert old is not None
            self.nodes.pop(old["metadata"]["name"], None)
        elif conditions.is_true(new, "Ready"):
            self.nodes.setdefault(new["metadata"]["name"], time.monotonic())
        else:
            self.nodes.pop(new["metadata"]["name"], None)


def options(directory: Path) -> local.Options:
    """A cluster of the bench's own, with the emulator and nothing else of ours."""
    return local.Options(
        name="bench",
        data_dir=directory / "cluster",
        time_scale=1.0,
        processes=(workloads.EMULATOR,),
        keep=False,
    )
