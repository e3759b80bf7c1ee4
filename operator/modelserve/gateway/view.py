"""What this gateway knows of the cluster: ModelServes, their pods, and which nodes are virtual."""

import asyncio
import logging
from collections.abc import Sequence

from modelserve import errors, ports
from modelserve.adapters import cache
from modelserve.api import keys, names
from modelserve.api.keys import Key
from modelserve.decide import fleet, routing
from modelserve.gateway import dispatch

log = logging.getLogger(__name__)

_BY_OWNER = "owner"


class View:
    """Keeps the dispatcher in step with the API server. ``run`` it as a task."""

    def __init__(self, cluster: ports.Cluster, dispatcher: dispatch.Dispatcher) -> None:
        self.table = routing.Table()
        self.synced = asyncio.Event()
        self._dispatcher = dispatcher
        self._models = cache.Store(cluster, ports.MODELSERVES)
        self._pods = cache.Store(
            cluster,
            ports.PODS,
            label_selector=names.LABEL_MODELSERVE,
            indexes={_BY_OWNER: _owner_index},
        )
        self._nodes = cache.Store(
            cluster, ports.NODES, label_selector=f"{names.LABEL_VIRTUAL}=true"
        )
        self._virtual_nodes: set[str] = set()
        self._routes: dict[Key, routing.Route] = {}
        self._dirty: set[Key] = set()
        self._settling: asyncio.Handle | None = None
        self._said: frozenset[str] = frozenset()
        self.removed: list[dispatch.Listener] = []
        self._models.on_change(self._on_model)
        self._pods.on_change(self._on_pod)
        self._nodes.on_change(self._on_node)

    async def run(self) -> None:
        """Follow the watches until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for store in (self._models, self._pods, self._nodes):
                tasks.create_task(store.run())
            tasks.create_task(self._sync())

    async def _sync(self) -> None:
        for store in (self._models, self._pods, self._nodes):
            await store.synced.wait()
        self.settle()
        self.synced.set()
        log.info("synced: %d ModelServes, %d engine pods", len(self._models), len(self._pods))

    def _on_model(self, old: ports.Object | None, new: ports.Object | None) -> None:
        metadata = (new or old or {})["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        if new is None:
            self._routes.pop(key, None)
        else:
            try:
                self._routes[key] = routing.read_route(new)
            except errors.InputError as error:
                log.warning("%s; its last readable state stays in force", error)
        self._mark(key)

    def _on_pod(self, old: ports.Object | None, new: ports.Object | None) -> None:
        for pod in (old, new):
            if pod is not None and (key := keys.owner(pod)) is not None:
                self._mark(key)

    def _on_node(self, old: ports.Object | None, new: ports.Object | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        if (new is not None) == (name in self._virtual_nodes):
            return
        if new is not None:
            self._virtual_nodes.add(name)
        else:
            self._virtual_nodes.discard(name)
        for pod in self._pods.items():
            if (pod.get("spec") or {}).get("nodeName") == name:
                self._on_pod(None, pod)

    def _mark(self, key: Key) -> None:
        self._dirty.add(key)
        if self.synced.is_set() and self._settling is None:
            self._settling = asyncio.get_running_loop().call_soon(self.settle)

    def settle(self) -> None:
        """Bring the dispatcher up to date with everything that changed since."""
        self._settling = None
        self.table = routing.Table(self._routes.values())
        dirty, self._dirty = self._dirty, set()
        for key in dirty:
            route = self._routes.get(key)
            if route is None:
                self._dispatcher.remove(key)
                for listener in self.removed:
                    listener(key)
                continue
            replicas = self.replicas(key)
            self._dispatcher.update(key, routing.terms_in_force(route, replicas), replicas)
        self._warn_of_shadowed()

    def replicas(self, key: Key) -> Sequence[fleet.Replica]:
        """The engine pods of this ModelServe that take part."""
        pods = self._pods.by_index(_BY_OWNER, str(key))
        read = (routing.read_replica(pod, self._virtual_nodes) for pod in pods)
        return [replica for replica in read if replica is not None]

    def _warn_of_shadowed(self) -> None:
        shadowed = frozenset(self.table.shadowed())
        for sentence in sorted(shadowed - self._said):
            log.warning("%s", sentence)
        self._said = shadowed


def _owner_index(pod: ports.Object) -> Sequence[str]:
    key = keys.owner(pod)
    return () if key is None else (str(key),)
