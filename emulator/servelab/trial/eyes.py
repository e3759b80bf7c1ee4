"""Eyes on one namespace of a cluster: watches, and the moments at which something was seen."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from modelserve import errors, ports
from modelserve.adapters import cache
from modelserve.api import conditions, names, pods

Seen = TypeVar("Seen")


class Eyes:
    """What the API server tells of ModelServes, Deployments and engine pods, as it tells it."""

    def __init__(self, cluster: ports.Cluster, namespace: str = "default") -> None:
        self.namespace = namespace
        self.modelserves = cache.Store(cluster, ports.MODELSERVES, namespace)
        self.deployments = cache.Store(cluster, ports.DEPLOYMENTS, namespace)
        self.pods = cache.Store(cluster, ports.PODS, namespace)
        self._stores = (self.modelserves, self.deployments, self.pods)
        self._changed = asyncio.Event()
        for store in self._stores:
            store.on_change(self._note)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Eyes"]:
        """Watch while the block runs."""
        tasks = [asyncio.create_task(store.run()) for store in self._stores]
        try:
            for store in self._stores:
                await store.synced.wait()
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def status(self, name: str) -> Mapping[str, Any]:
        """The status of a ModelServe, empty while there is none."""
        found = self.modelserves.get(self.namespace, name) or {}
        return dict(found.get("status") or {})

    def condition(self, name: str, kind: str) -> Mapping[str, Any]:
        """One condition of a ModelServe, empty if it has none of that type."""
        return conditions.find({"status": self.status(name)}, kind)

    def ordered(self, name: str) -> int:
        """Replicas its Deployment is told to have."""
        found = self.deployments.get(self.namespace, name) or {}
        return int(found.get("spec", {}).get("replicas", 0))

    def engines(self, name: str) -> list[ports.Object]:
        """Its pods."""
        return [
            pod
            for pod in self.pods.items()
            if pod["metadata"].get("labels", {}).get(names.LABEL_MODELSERVE) == name
        ]

    async def until(self, seen: Callable[[], Seen | None], limit_real_s: float, what: str) -> Seen:
        """Wait for ``seen`` to give something true, looking at each change.

        Raises ModelServeError after ``limit_real_s``, naming what was waited for.
        """
        try:
            async with asyncio.timeout(limit_real_s):
                while not (found := seen()):
                    self._changed.clear()
                    await self._changed.wait()
                return found
        except TimeoutError:
            raise errors.ModelServeError(
                f"waited {limit_real_s:.0f} s for {what}, in vain"
            ) from None

    def _note(self, old: ports.Object | None, new: ports.Object | None) -> None:
        self._changed.set()


class Moment:
    """When something was first seen, in monotonic real seconds; looks at each change."""

    def __init__(self, store: cache.Store, seen: Callable[[ports.Object], bool]) -> None:
        self._real_s = math.nan
        self._seen = seen
        store.on_change(self._look)

    def after(self, start_real_s: float) -> float:
        """Real seconds after ``start_real_s``; NaN if it was never seen."""
        return self._real_s - start_real_s

    def close(self) -> None:
        """Look no more."""
        self._seen = _never

    def _look(self, old: ports.Object | None, new: ports.Object | None) -> None:
        if math.isnan(self._real_s) and new is not None and self._seen(new):
            self._real_s = time.monotonic()


def _never(item: ports.Object) -> bool:
    return False


def serving(pod: ports.Object) -> bool:
    """Whether a pod is there to stay: not on its way out, not ended."""
    return not pods.is_over(pod) and not pod["metadata"].get("deletionTimestamp")


def ready(pod: ports.Object) -> bool:
    """Whether a pod is Ready and stays."""
    return serving(pod) and pods.is_ready(pod)
