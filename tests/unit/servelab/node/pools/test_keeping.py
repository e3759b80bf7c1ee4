"""Pools and their nodes."""

import copy
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import cache
from modelserve.api import conditions
from servelab.node.pools import draining, keeping, poolstatus, registration
from servelab.node.pools.keeping import PoolKeeper

NOW = 1_800_000_000.0
KUBELET = registration.Kubelet("127.0.0.1", 10250)


def merge(item: dict[str, Any], body: Any) -> None:
    """A merge patch."""
    for key, value in body.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict):
            merge(item.setdefault(key, {}), value)
        else:
            item[key] = value


class FakeCluster:
    """Nodes and pools in a dictionary, told to the stores at once."""

    def __init__(self) -> None:
        self.stores = {
            plural: cache.Store(self, resource)  # type: ignore[arg-type]
            for plural, resource in (("nodes", ports.NODES), ("gpupools", ports.GPUPOOLS))
        }
        self.writes: list[tuple[str, str]] = []
        self.events: list[tuple[str, str, str]] = []
        self.now = NOW
        self.refused = ""  # the name of what cannot be created
        self.guarded = ""  # the name of a pod that a disruption budget holds

    def tell(self, plural: str, item: dict[str, Any], *, gone: bool = False) -> None:
        change = ports.Change.DELETED if gone else ports.Change.MODIFIED
        self.stores[plural].handle(ports.WatchEvent(change, item))

    def emit(self, subject: Any, kind: str, reason: str, message: str) -> None:
        self.events.append((subject["metadata"]["name"], reason, message))

    async def create(self, resource: ports.Resource, namespace: str | None, body: Any) -> Any:
        item = copy.deepcopy(dict(body))
        if item["metadata"]["name"] == self.refused:
            raise errors.Invalid("no such thing")
        item["metadata"]["uid"] = f"uid-{item['metadata']['name']}"
        if resource.kind == "Eviction":
            if self.guarded == item["metadata"]["name"]:
                raise errors.Unavailable("it would violate the disruption budget", 429)
            self.writes.append(("evict", item["metadata"]["name"]))
            return item
        self.writes.append(("create", item["metadata"]["name"]))
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
        if resource is ports.PODS:
            return
        item = self.stores[resource.plural].get(None, name)
        assert item is not None
        self.tell(resource.plural, dict(item), gone=True)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def keeper(cluster: FakeCluster) -> keeping.PoolKeeper:
    stores = cluster.stores
    return PoolKeeper(
        cluster,  # type: ignore[arg-type]
        stores["gpupools"],
        stores["nodes"],
        KUBELET,
        lambda: cluster.now,
        sink=cluster,
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
    assert node_names(cluster) == ["dgx-0", "dgx-1", "dgx-2"]
    cluster.now += 1.0
    await keeper.reconcile([])
    assert node_names(cluster) == ["dgx-0"]


@pytest.mark.parametrize("last", [{}, {"deletionTimestamp": "2027-01-15T08:00:00Z"}])
async def test_a_deleted_pool_has_its_nodes_drained_with_its_own_notice(
    cluster: FakeCluster, keeper: PoolKeeper, last: dict[str, Any]
) -> None:
    found = pool(drain={"noticeSeconds": 30})
    cluster.tell("gpupools", found)
    await keeper.reconcile([])
    cluster.tell("gpupools", found | {"metadata": found["metadata"] | last}, gone=not last)
    user = bound("p", "dgx-0")
    assert await keeper.reconcile([user]) == NOW + 1
    assert node_of(cluster, "dgx-0")["spec"]["unschedulable"]
    for passed in (1, 29):
        cluster.now = NOW + passed
        await keeper.reconcile([user])
        assert (cluster.writes[-1], node_names(cluster)) == (("evict", "p"), ["dgx-0"])
    cluster.now = NOW + 30
    await keeper.reconcile([user])
    assert node_names(cluster) == []


async def test_a_pod_that_a_disruption_budget_holds_stays_until_the_notice_is_over(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(drain={"noticeSeconds": 30}))
    await keeper.reconcile([])
    cluster.guarded = "p"
    cluster.tell("gpupools", pool(nodes=0, drain={"noticeSeconds": 30}))
    user = bound("p", "dgx-0")
    for passed in (0, 1, 29):
        cluster.now = NOW + passed
        await keeper.reconcile([user])
    assert ("evict", "p") not in cluster.writes
    assert ("p", "ScaleDownFailed", "failed to delete pod for ScaleDown") in cluster.events
    cluster.now = NOW + 30
    await keeper.reconcile([user])
    assert node_names(cluster) == []


async def test_an_emulator_that_comes_back_drains_the_nodes_of_a_pool_that_went_meanwhile(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    cluster.tell("gpupools", pool(), gone=True)
    stores = cluster.stores["gpupools"], cluster.stores["nodes"]
    back = PoolKeeper(cluster, *stores, KUBELET, lambda: cluster.now)  # type: ignore[arg-type]
    await back.reconcile([])
    assert node_names(cluster) == ["dgx-0"]
    cluster.now += 1
    assert await back.reconcile([]) == float("inf")
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
    assert poolstatus.gpus_by_node(found) == {"a": 7, "b": 8}


def test_pods_that_have_ended_take_none() -> None:
    assert poolstatus.gpus_by_node([pod("a", 4, phase="Succeeded")]) == {}


ELASTIC = {"min": 0, "max": 2, "bootSeconds": 90, "deviceSeconds": 20, "idleSeconds": 600}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def waiting(name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    """A pod that the scheduler found no node for."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"resources": limits}], "tolerations": [TOLERATION], **spec},
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


def bound(name: str, node: str, **meta: Any) -> dict[str, Any]:
    found = waiting(name)
    found["spec"]["nodeName"] = node
    found["metadata"] |= meta
    return found | {"status": {"phase": "Running"}}


def node_of(cluster: FakeCluster, name: str) -> Any:
    return cluster.stores["nodes"].get(None, name) or {}


async def test_a_pod_without_a_node_brings_one_ready_first_and_its_gpus_last(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    assert await keeper.reconcile([waiting("p")]) == NOW + 70
    assert cluster.events == [
        ("p", "TriggeredScaleUp", "pod triggered scale-up: [{dgx 0->1 (max: 2)}]")
    ]
    assert (node_names(cluster), status(cluster)["provisioningNodes"]) == ([], 1)
    cluster.now = NOW + 70
    assert await keeper.reconcile([waiting("p")]) == NOW + 90
    young = node_of(cluster, "dgx-0")
    assert conditions.is_true(young, "Ready")
    assert "nvidia.com/gpu" not in young["status"]["allocatable"]
    assert not any(label.startswith("nvidia.com/") for label in young["metadata"]["labels"])


async def test_a_machine_boots_on_while_the_emulator_is_away(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    await keeper.reconcile([waiting("p")])
    assert [each["node"] for each in status(cluster)["booting"]] == ["dgx-0"]
    cluster.now = NOW + 80
    stores = cluster.stores["gpupools"], cluster.stores["nodes"]
    back = PoolKeeper(cluster, *stores, KUBELET, lambda: cluster.now)  # type: ignore[arg-type]
    assert await back.reconcile([waiting("p")]) == pytest.approx(NOW + 90)
    assert (node_names(cluster), status(cluster)["booting"]) == (["dgx-0"], [])


async def test_a_node_goes_when_it_would_have_though_the_emulator_was_away(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    for passed in (0, 70, 90):
        cluster.now = NOW + passed
        await keeper.reconcile([waiting("p")])
    await keeper.reconcile([])
    assert [each["node"] for each in status(cluster)["idle"]] == ["dgx-0"]
    cluster.now += ELASTIC["idleSeconds"] - 1
    stores = cluster.stores["gpupools"], cluster.stores["nodes"]
    back = PoolKeeper(cluster, *stores, KUBELET, lambda: cluster.now)  # type: ignore[arg-type]
    assert await back.reconcile([]) == pytest.approx(cluster.now + 1)
    cluster.now += 1
    await back.reconcile([])
    assert node_of(cluster, "dgx-0")["spec"]["unschedulable"]


async def test_a_new_nodes_gpus_come_with_their_labels(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    for passed in (0, 70, 90):
        cluster.now = NOW + passed
        await keeper.reconcile([waiting("p")])
    node = node_of(cluster, "dgx-0")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert node["metadata"]["labels"]["nvidia.com/gfd.timestamp"] == str(int(NOW + 90))
    await keeper.reconcile([waiting("p")])
    assert (status(cluster)["gpus"], status(cluster)["provisioningNodes"]) == (8, 0)


async def test_no_more_nodes_come_than_the_pool_has_at_most(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    await keeper.reconcile([waiting(name) for name in ("a", "b", "c")])
    assert status(cluster)["provisioningNodes"] == 2
    refusal = "pod didn't trigger scale-up: 1 max node group size reached"
    assert cluster.events[-1] == ("c", "NotTriggerScaleUp", refusal)
    await keeper.reconcile([waiting(name) for name in ("a", "b", "c")])
    assert len(cluster.events) == 3


@pytest.mark.parametrize(
    "pod",
    [
        waiting("too-many", gpus=9),
        waiting("elsewhere", nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"}),
        waiting("intolerant", tolerations=[]),
        waiting("no-gpu", gpus=0),
    ],
    ids=lambda pod: pod["metadata"]["name"],
)
async def test_a_pod_that_no_node_of_the_pool_would_take_brings_none(
    cluster: FakeCluster, keeper: PoolKeeper, pod: dict[str, Any]
) -> None:
    cluster.tell("gpupools", elastic_pool())
    await keeper.reconcile([pod])
    assert status(cluster)["provisioningNodes"] == 0


def elastic_pool() -> dict[str, Any]:
    return pool(nodes=ELASTIC)


async def test_small_pods_share_the_node_they_wait_for(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    await keeper.reconcile([waiting(name, gpus=4) for name in ("a", "b")])
    assert status(cluster)["provisioningNodes"] == 1


async def stand(cluster: FakeCluster, keeper: PoolKeeper) -> None:
    """An elastic pool with one node, which has just come."""
    cluster.tell("gpupools", pool(nodes=ELASTIC))
    for passed in (0, 70, 90):
        cluster.now = NOW + passed
        await keeper.reconcile([waiting("p")])
    cluster.events.clear()


async def test_a_node_idle_for_long_is_tainted_and_then_goes(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    await stand(cluster, keeper)
    daemon = bound("d", "dgx-0", ownerReferences=[{"kind": "DaemonSet"}])
    assert await keeper.reconcile([daemon]) == NOW + 90 + 600
    cluster.now = NOW + 90 + 600
    await keeper.reconcile([daemon])
    assert node_of(cluster, "dgx-0")["spec"]["unschedulable"] is True
    assert any(
        t["key"].startswith("ToBeDeleted") for t in node_of(cluster, "dgx-0")["spec"]["taints"]
    )
    cluster.now += 1.0
    await keeper.reconcile([daemon])
    assert node_names(cluster) == []
    assert [reason for _, reason, _ in cluster.events] == ["ScaleDown", "ScaleDown"]


async def test_a_node_with_a_pod_stays(cluster: FakeCluster, keeper: PoolKeeper) -> None:
    await stand(cluster, keeper)
    cluster.now += 10_000
    await keeper.reconcile([bound("p", "dgx-0")])
    assert draining.gone_at_s(node_of(cluster, "dgx-0")) is None


async def test_a_pod_that_comes_at_the_last_moment_keeps_the_node(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    await stand(cluster, keeper)
    await keeper.reconcile([])
    cluster.now += 600
    await keeper.reconcile([])
    await keeper.reconcile([bound("p", "dgx-0")])
    assert draining.gone_at_s(node_of(cluster, "dgx-0")) is None
    assert "unschedulable" not in node_of(cluster, "dgx-0")["spec"]


async def test_a_shrunk_pool_empties_its_nodes_and_switches_them_off_after_the_notice(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=1, drain={"noticeSeconds": 30}))
    await keeper.reconcile([bound("p", "dgx-0")])
    cluster.tell("gpupools", pool(nodes=0, drain={"noticeSeconds": 30}))
    await keeper.reconcile([bound("p", "dgx-0")])
    cluster.now += 1.0
    await keeper.reconcile([bound("p", "dgx-0")])
    assert ("evict", "p") in cluster.writes
    assert status(cluster)["drainingNodes"] == 1
    cluster.now = NOW + 30
    await keeper.reconcile([bound("p", "dgx-0", deletionTimestamp="soon")])
    assert node_names(cluster) == []


async def test_pods_go_with_a_machine_that_is_gone(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cluster.tell("gpupools", pool(nodes=1))
    await keeper.reconcile([bound("p", "dgx-0")])
    cluster.tell("gpupools", pool(), gone=True)
    await keeper.reconcile([bound("p", "dgx-0")])
    await keeper.reconcile([bound("p", "dgx-0")])
    assert cluster.writes.count(("evict", "p")) == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"nodes": 9000}, "9000 nodes of 8 GPUs have room for more pods than the 65534 addresses"),
        ({"mig": {"profiles": {"1g.5gb": 7}}}, "has no profile '1g.5gb'; it has 1g.10gb"),
        ({"mig": {"profiles": {"1g.10gb": 7}}, "gpu": "l4"}, "NVIDIA-L4 cannot be cut"),
        ({"mig": {"strategy": "mixed", "profiles": {"4g.40gb": 2}}}, "8 of 7 compute"),
        ({"nodes": {"min": 3, "max": 2}}, "spec.nodes: min 3 is more than max 2; raise max"),
        ({"nodes": {"min": 3}}, "spec.nodes.max: Field required"),
        ({"nodes": -1}, "spec.nodes: Input should be greater than or equal to 0"),
        ({"gpu": "mi300x", "devices": "DRA"}, "DRA is for NVIDIA's GPUs"),
        ({"cpu": "-1"}, "spec.cpu: '-1' is no amount; write for instance 96"),
        ({"disk": "1Gb"}, "spec.disk: '1Gb' is no amount"),
        ({"memory": "0Gi"}, "spec.memory: '0Gi' must be greater than zero"),
        ({"labels": {"my team": "a"}}, "spec.labels: 'my team' is no label's name"),
        ({"labels": {"team": "a b"}}, "spec.labels: 'a b' is no value of a label"),
        ({"taints": [{"key": "a b", "effect": "NoSchedule"}]}, "spec.taints.0.key: "),
        (
            {"kubelet": {"imageGcHighThresholdPercent": 10}},
            "spec.kubelet: imageGcLowThresholdPercent 80 is not less than",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_pool_that_cannot_be_is_flagged_with_a_sentence(
    cluster: FakeCluster, keeper: PoolKeeper, fields: dict[str, Any], text: str
) -> None:
    given = pool()
    given["spec"] |= fields
    cluster.tell("gpupools", given)
    await keeper.reconcile([])
    assert text in status(cluster)["conditions"][0]["message"]
    assert node_names(cluster) == []


async def test_a_pool_whose_nodes_could_not_be_named_is_flagged(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    found = pool(nodes={"max": 1000})
    found["metadata"]["name"] = "d" * 60
    cluster.tell("gpupools", found)
    await keeper.reconcile([])
    told = (cluster.stores["gpupools"].get(None, "d" * 60) or {})["status"]["conditions"][0]
    assert "-999 would have a name of 64 characters" in told["message"]


async def test_a_pool_that_the_api_server_refuses_does_not_hold_up_the_others(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    wrong = pool()
    wrong["metadata"] = wrong["metadata"] | {"name": "a-wrong-one"}
    cluster.refused = "a-wrong-one-0"
    cluster.tell("gpupools", wrong)
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    assert node_names(cluster) == ["dgx-0"]
    told = (cluster.stores["gpupools"].get(None, "a-wrong-one") or {})["status"]["conditions"][0]
    assert (told["reason"], told["message"]) == ("InvalidSpec", "no such thing")


async def test_labels_of_slices_go_when_the_gpus_are_whole_again(
    cluster: FakeCluster, keeper: PoolKeeper
) -> None:
    cut = {"strategy": "mixed", "profiles": {"3g.40gb": 2}}
    cluster.tell("gpupools", pool(mig=cut))
    await keeper.reconcile([])
    assert node_of(cluster, "dgx-0")["status"]["capacity"]["nvidia.com/mig-3g.40gb"] == "16"
    cluster.tell("gpupools", pool())
    await keeper.reconcile([])
    node = node_of(cluster, "dgx-0")
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert not any(
        "mig-3g" in key for key in (*node["metadata"]["labels"], *node["status"]["capacity"])
    )
