"""Pools and their nodes."""

import copy
from typing import Any

import pytest

from modelserve import ports
from modelserve.adapters import cache
from modelserve.api import conditions
from servelab.node import pools, registration
from servelab.node.pools import PoolKeeper

NOW = 1_800_000_000.0
KUBELET = registration.Kubelet("127.0.0.1", 10250)


class FakeCluster:
    """Nodes and pools in a dictionary, told to the stores at once."""

    def __init__(self) -> None:
        self.stores = {
            plural: cache.Store(self, resource)  # type: ignore[arg-type]
            for plural, resource in (("nodes", ports.NODES), ("gpupools", ports.GPUPOOLS))
        }
        self.writes: list[tuple[str, str]] = []

    def tell(self, plural: str, item: dict[str, Any], *, gone: bool = False) -> None:
        change = ports.Change.DELETED if gone else ports.Change.MODIFIED
        self.stores[plural].handle(ports.WatchEvent(change, item))

    async def create(self, resource: ports.Resource, namespace: str | None, body: Any) -> Any:
        item = copy.deepcopy(dict(body))
        item["metadata"]["uid"] = f"uid-{item['metadata']['name']}"
        self.writes.append(("create", item["metadata"]["name"]))
        self.tell(resource.plural, item)
        return item

    async def patch(
        self, resource: ports.Resource, namespace: str | None, name: str, body: Any, **how: Any
    ) -> Any:
        item = copy.deepcopy(dict(self.stores[resource.plural].get(None, name) or {}))
        for key, value in body.items():
            if key == "metadata":
                item["metadata"]["labels"] |= value["labels"]
            else:
                item[key] = item.get(key, {}) | value
        self.writes.append(("patch", name))
        self.tell(resource.plural, item)
        return item

    async def delete(
        self, resource: ports.Resource, namespace: str | None, name: str, **how: Any
    ) -> None:
        self.writes.append(("delete", name))
        item = self.stores[resource.plural].get(None, name)
        assert item is not None
        self.tell(resource.plural, dict(item), gone=True)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def keeper(cluster: FakeCluster) -> pools.PoolKeeper:
    stores = cluster.stores
    return PoolKeeper(
        cluster,  # type: ignore[arg-type]
        stores["gpupools"],
        stores["nodes"],
        KUBELET,
        lambda: NOW,
    )


def pool(**spec: Any) -> dict[str, Any]:
    meta = {"name": "dgx", "uid": "u-1", "generation": 1}
    return {"metadata": meta, "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", **spec}}


def status(cluster: FakeCluster) -> Any:
    found = cluster.stores["gpupools"].get(None, "dgx")
    assert found is not None
    return found["status"]


def node_names(cluster: FakeCluster) -> list[str]:
    return sorted(node["metadata"]["name"] for node in cluster.stores["nodes"].items())


async def test_a_pool_gets_its_nodes_and_says_so(cluster: FakeCluster, keeper: PoolKeeper) -> None:
    cluster.tell("gpupools", pool(nodes=2))
    await keeper.reconcile([])
    assert node_names(cluster) == ["dgx-0", "dgx-1"]
    assert (status(cluster)["readyNodes"], status(cluster)["gpus"]) == (2, 16)
    assert status(cluster)["conditions"][0]["status"] == "True"


async def test_once_all_is_well_nothing_is_written(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=2))
    await keeper.reconcile([])
    cluster.writes.clear()
    await keeper.reconcile([])
    assert cluster.writes == []


async def test_a_lower_count_takes_the_highest_numbers(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=3))
    await keeper.reconcile([])
    cluster.tell("gpupools", pool(nodes=1))
    await keeper.reconcile([])
    assert node_names(cluster) == ["dgx-0"]


async def test_a_deleted_pool_takes_its_nodes_along(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    cluster.tell("gpupools", pool(), gone=True)
    await keeper.reconcile([])
    assert node_names(cluster) == []


async def test_a_node_thought_dead_is_posted_ready_again(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    node = copy.deepcopy(dict(cluster.stores["nodes"].get(None, "dgx-0") or {}))
    node["status"]["conditions"][3]["status"] = "Unknown"
    cluster.tell("nodes", node)
    await keeper.reconcile([])
    assert conditions.is_true(cluster.stores["nodes"].get(None, "dgx-0") or {}, "Ready")


async def test_a_pool_changed_to_an_unknown_gpu_leaves_its_nodes_as_they_are(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    cluster.tell("gpupools", pool(gpu="potato"))
    written = len(cluster.writes)
    await keeper.refresh(cluster.stores["nodes"].get(None, "dgx-0") or {}, [])
    assert len(cluster.writes) == written


async def test_new_labels_reach_the_nodes(cluster: FakeCluster, keeper: PoolKeeper) -> None:
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    cluster.tell("gpupools", pool(labels={"team": "a"}))
    await keeper.reconcile([])
    node = cluster.stores["nodes"].get(None, "dgx-0") or {}
    assert node["metadata"]["labels"]["team"] == "a"


async def test_an_unknown_gpu_is_a_condition(cluster: FakeCluster, keeper: PoolKeeper) -> None:
    cluster.tell("gpupools", pool(gpu="NVIDIA-H1000"))
    await keeper.reconcile([])
    ready = status(cluster)["conditions"][0]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "unknown GPU 'NVIDIA-H1000'" in ready["message"]


async def test_gpus_in_use_are_counted(cluster: FakeCluster, keeper: PoolKeeper) -> None:
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    limits = {"limits": {"nvidia.com/gpu": "3"}}
    await keeper.reconcile([{"spec": {"nodeName": "dgx-0", "containers": [{"resources": limits}]}}])
    assert status(cluster)["gpusInUse"] == 3


def pod(node: str, *gpus: int, phase: str = "Running") -> dict[str, Any]:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": str(count)}}} for count in gpus]
    return {"spec": {"nodeName": node, "containers": containers}, "status": {"phase": phase}}


def test_gpus_are_summed_by_node() -> None:
    found = [pod("a", 1, 2), pod("a", 4), pod("b", 8)]
    assert pools.gpus_by_node(found) == {"a": 7, "b": 8}


def test_pods_that_have_ended_take_none() -> None:
    assert pools.gpus_by_node([pod("a", 4, phase="Succeeded")]) == {}
