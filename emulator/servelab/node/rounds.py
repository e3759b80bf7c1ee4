"""The rounds made over all nodes: pools are reconciled, statuses posted, images collected."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterable, Mapping

from modelserve import errors, ports
from modelserve.adapters import backoff, cache
from modelserve.api import names
from servelab.node import news, services
from servelab.node.machines import machine
from servelab.node.pools import keeping
from servelab.timing import caches

log = logging.getLogger(__name__)

# A kubelet posts its node's status at least this often.
STATUS_PERIOD_REAL_S = 300.0
# Changes that come close together are taken together.
GATHER_REAL_S = 0.05
RETRY_REAL_S = 1.0
LONGEST_PAUSE_REAL_S = 10.0
# Rest between two looks at all nodes and pods, in times that a look takes.
REST = 9.0
LONGEST_REST_REAL_S = 1.0


class Rounds:
    """Of one process. Run ``keep``, ``refresh``, ``collect``."""

    def __init__(
        self,
        shared: services.Services,
        keeper: keeping.PoolKeeper,
        pods: cache.Store,
        machines: Mapping[str, machine.Machine],
        told: news.News,
    ) -> None:
        self._services = shared
        self._clock = shared.clock
        self._news = told
        self._keeper = keeper
        self._pods = pods
        self._machines = machines
        # Only an elastic pool needs to know of pods that have no node.
        self._homeless = cache.Store(shared.cluster, ports.PODS, field_selector="spec.nodeName=")
        self._following: asyncio.Task[None] | None = None
        self._pause = backoff.Backoff(random.Random(), RETRY_REAL_S, LONGEST_PAUSE_REAL_S)

    async def keep(self) -> None:
        """Reconcile when something changed, or is due; a tenth of the time at most. For ever.

        What comes after a rest is acted upon at once.
        """
        due_s, rested_real_s = float("inf"), float("-inf")
        try:
            while True:
                await self._wait(due_s)
                await self._clock.sleep_real(max(0.0, rested_real_s - self._clock.real_s()))
                begun_real_s = self._clock.real_s()
                self._news.changed.clear()
                try:
                    await self._follow()
                    pods = [*self._pods.items(), *self._homeless.items()]
                    due_s = await self._keeper.reconcile(pods)
                    await self._write_images()
                    self._pause.reset()
                except errors.ClusterError as error:
                    log.warning("nodes: %s", error)
                    wish_real_s = getattr(error, "retry_after_s", None) or 0.0
                    await self._clock.sleep_real(max(self._pause.next_real_s(), wish_real_s))
                    self._news.tell()
                ended_real_s = self._clock.real_s()
                rest_real_s = min(REST * (ended_real_s - begun_real_s), LONGEST_REST_REAL_S)
                rested_real_s = ended_real_s + max(GATHER_REAL_S, rest_real_s)
        finally:
            if self._following is not None:
                self._following.cancel()

    async def refresh(self) -> None:
        """Post every node's status from time to time. For ever."""
        while True:
            await self._clock.sleep_real(STATUS_PERIOD_REAL_S)
            for name in list(self._machines):
                with contextlib.suppress(errors.ClusterError):
                    await self._post(name)

    async def collect(self) -> None:
        """A kubelet's image garbage collection, on every node. For ever."""
        while True:
            await self._clock.sleep_real(max(1.0, caches.GC_EVERY_S / self._clock.scale))
            now_s = self._services.now_s()
            used = _images_in_use(self._pods.items())
            for name, known in list(self._machines.items()):
                arrived = known.host.images.settle(now_s)
                swept = known.host.images.collect(used.get(name, ()), now_s)
                if swept.failed:
                    _tell_failure(known, swept)
                if arrived or swept.gone:
                    self._news.tell_images(name)

    async def _wait(self, due_s: float) -> None:
        """Until something changed, or that Unix time. The clock's own sleep is used."""
        if due_s == float("inf"):
            await self._news.changed.wait()
            return
        left_s = max(0.0, due_s - self._services.unix_s())
        waiting = asyncio.ensure_future(self._news.changed.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep_real(left_s))
        try:
            await asyncio.wait([waiting, sleeping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()

    async def _follow(self) -> None:
        """Follow pods without a node as soon as a pool could bring them one."""
        if self._following is None and self._keeper.elastic:
            self._homeless.on_change(lambda old, new: self._news.tell())
            self._following = asyncio.create_task(self._homeless.run())
            await self._homeless.synced.wait()

    async def _write_images(self) -> None:
        while self._news.images:
            name = self._news.images.pop()
            try:
                await self._post(name)
            except errors.ClusterError:
                self._news.images.add(name)
                raise

    async def _post(self, name: str) -> None:
        known = self._machines.get(name)
        if known is not None:
            annotations = {names.WARM_WEIGHTS: known.warm_annotation()}
            await self._keeper.refresh(known.object, known.host.images.listing(), annotations)


def _images_in_use(pods: Iterable[ports.Object]) -> Mapping[str, set[str]]:
    """Images of the containers on each node, whether they run or have ended."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        spec = pod["spec"]
        containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
        images = {container.get("image", "") for container in containers}
        found.setdefault(spec.get("nodeName", ""), set()).update(images)
    return found


def _tell_failure(known: machine.Machine, swept: caches.Swept) -> None:
    text = (
        f"Failed to garbage collect required amount of images. Attempted to free "
        f"{swept.wanted_bytes} bytes, but only found {swept.freed_bytes} bytes eligible to free."
    )
    node = {"apiVersion": "v1", "kind": "Node", **known.object}
    known.sink.emit(node, "Warning", "FreeDiskSpaceFailed", text)
    known.sink.emit(node, "Warning", "ImageGCFailed", text)
