"""A cluster that is a dictionary, with a keeper of pools on it."""

import copy
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import cache
from servelab.node.pools import keeping, registration

NOW = 1_800_000_000.0
KUBELET = registration.Kubelet("127.0.0.1", 10250)
ELASTIC = {"min": 0, "max": 2, "bootSeconds": 90, "deviceSeconds": 20, "idleSeconds": 600}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def merge(item: dict[str, Any], body: Any) -> None:
    """A merge patch."""
    for key, value in body.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict):
            merge(item.setdefault(key, {}), value)
        else:
            item[key] = value


class Grounds:
    """Nodes and pools in a dictionary, told to the stores at once, and who keeps them."""

    elastic = ELASTIC

    def __init__(self) -> None:
        self.stores = {
            plural: cache.Store(self, resource)  # type: ignore[arg-type]
            for plural, resource in (("nodes", ports.NODES), ("gpupools", ports.GPUPOOLS))
        }
        self.writes: list[tuple[str, str]] = []
        self.events: list[tuple[str, str, str]] = []
        self.now = NOW
        self.refused = ""  # the name of what cannot be created
        self.busy: errors.ClusterError | None = None  # the answer to deletions
        self.guarded = ""  # the name of a pod that a disruption budget holds
        self.restart()

    def restart(self) -> None:
        """The emulator ends, and another one begins."""
        stores = self.stores["gpupools"], self.stores["nodes"]
        self.keeper = keeping.PoolKeeper(
            *(self, *stores, KUBELET, lambda: self.now),  # type: ignore[arg-type]
            sink=self,
        )

    # What there is.

    def pool(self, name: str = "dgx", **spec: Any) -> dict[str, Any]:
        """Somebody applies a pool like that."""
        meta = {"name": name, "uid": f"u-{name}", "generation": 1}
        found = {"metadata": meta, "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", **spec}}
        self.tell("gpupools", found)
        return found

    async def reconcile(self, *pods: Any, after: float = 0.0) -> float:
        """The keeper looks, so many seconds later."""
        self.now += after
        return await self.keeper.reconcile(pods)

    async def stand(self) -> None:
        """An elastic pool with one node, which has just come."""
        self.pool(nodes=ELASTIC)
        for passed in (0, 70, 20):
            await self.reconcile(self.waiting("p"), after=passed)
        self.events.clear()

    def status(self, name: str = "dgx") -> Any:
        return (self.stores["gpupools"].get(None, name) or {})["status"]

    def said(self, name: str = "dgx") -> Any:
        """The pool's condition."""
        return self.status(name)["conditions"][0]

    def node(self, name: str = "dgx-0") -> Any:
        return self.stores["nodes"].get(None, name) or {}

    def node_names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self.stores["nodes"].items())

    @staticmethod
    def waiting(name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
        """A pod that the scheduler found no node for."""
        limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
        unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        return {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"containers": [{"resources": limits}], "tolerations": [TOLERATION], **spec},
            "status": {"phase": "Pending", "conditions": [unschedulable]},
        }

    def bound(self, name: str, node: str = "dgx-0", **meta: Any) -> dict[str, Any]:
        """A pod that runs there."""
        found = self.waiting(name)
        found["spec"]["nodeName"] = node
        found["metadata"] |= meta
        return found | {"status": {"phase": "Running"}}

    # What the keeper calls.

    def tell(self, plural: str, item: dict[str, Any], *, gone: bool = False) -> None:
        change = ports.Change.DELETED if gone else ports.Change.MODIFIED
        self.stores[plural].handle(ports.WatchEvent(change, item))

    def emit(self, subject: Any, kind: str, reason: str, message: str) -> None:
        self.events.append((subject["metadata"]["name"], reason, message))

    async def create(self, resource: ports.Resource, namespace: str | None, body: Any) -> Any:
        item = copy.deepcopy(dict(body))
        name = item["metadata"]["name"]
        if name == self.refused:
            raise errors.Invalid("no such thing")
        item["metadata"]["uid"] = f"uid-{name}"
        if resource.kind == "Eviction":
            if self.guarded == name:
                raise errors.Unavailable("it would violate the disruption budget", 429)
            self.writes.append(("evict", name))
            return item
        self.writes.append(("create", name))
        self.tell(resource.plural, item)
        return item

    async def patch(
        self, resource: ports.Resource, namespace: str | None, name: str, body: Any, **how: Any
    ) -> Any:
        item = copy.deepcopy(dict(self.stores[resource.plural].get(None, name) or {}))
        merge(item, body)
        self.writes.append(("patch", name))
        self.tell(resource.plural, item)
        return item

    async def delete(
        self, resource: ports.Resource, namespace: str | None, name: str, **how: Any
    ) -> None:
        self.writes.append(("delete", name))
        if self.busy is not None:
            raise self.busy
        if resource is ports.PODS:
            return
        item = self.stores[resource.plural].get(None, name)
        assert item is not None
        self.tell(resource.plural, dict(item), gone=True)


@pytest.fixture
def grounds() -> Grounds:
    return Grounds()
