"""Who owns the replica count, proven on the real API server: creation, crashes, foreign writers."""

import asyncio
import contextlib
import dataclasses
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import kube
from modelserve.api import names, pods
from modelserve.api.keys import Key
from modelserve.reconciling import children
from modelserve.render import labels, replica_owner
from modelserve.render.replica_owner import Owner as Writer

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclasses.dataclass(frozen=True)
class Owner:
    """The ModelServe whose Deployment it is; the operator, should it run, refuses its spec."""

    key: Key
    body: ports.Object

    def manifest(
        self, replicas: int | None, uid: str = "", image: str = "engine:1", surge: int = 1
    ) -> dict[str, Any]:
        """What ``render.deployment`` gives, as small as it can be."""
        name = self.key.name
        gpu = {"nvidia.com/gpu": "1"}
        container = {"name": "engine", "image": image, "resources": {"limits": gpu}}
        return {
            "metadata": {
                "name": name,
                "labels": labels.of_children(name),
                "ownerReferences": [labels.owner_reference(self.body)],
                **({"uid": uid} if uid else {}),
            },
            "spec": {
                **({} if replicas is None else {"replicas": replicas}),
                "selector": {"matchLabels": labels.selector(name)},
                "strategy": {
                    "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0 if surge else 1}
                },
                "template": {
                    "metadata": {"labels": labels.of_children(name)},
                    "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
                },
            },
        }


@pytest.fixture
async def cluster(kubeconfig: Path) -> AsyncIterator[kube.KubeCluster]:
    async with await kube.KubeCluster.connect(str(kubeconfig)) as connected:
        yield connected


@pytest.fixture
async def owner(cluster: kube.KubeCluster, namespace: str) -> Owner:
    spec = {"model": {"name": "nobody/nothing"}, "gpu": {"product": "h100"}}
    body = {"metadata": {"name": "owned"}, "spec": spec}
    made = await cluster.create(ports.MODELSERVES, namespace, body)
    return Owner(Key(namespace, "owned"), made)


async def read(cluster: ports.Cluster, owner: Owner) -> ports.Object:
    return await cluster.get(ports.DEPLOYMENTS, owner.key.namespace, owner.key.name)


async def apply_main(cluster: ports.Cluster, owner: Owner, image: str = "engine:1") -> ports.Object:
    """One main apply as the operator makes it, from whatever is there."""
    try:
        live = await read(cluster, owner)
    except errors.NotFound:
        return await children.Children(cluster).create_deployment(owner.key, owner.manifest(0))
    body = owner.manifest(replica_owner.replicas_to_apply(live), live["metadata"]["uid"], image)
    return await children.Children(cluster).apply_deployment(owner.key, live, body)


async def scale(cluster: ports.Cluster, owner: Owner, replicas: int) -> None:
    await children.Children(cluster).scale(owner.key, await read(cluster, owner), replicas)


def state(deployment: ports.Object) -> tuple[int, Writer]:
    return replica_owner.live_replicas(deployment), replica_owner.replicas_owner(deployment)


async def test_a_new_deployment_has_no_replicas_and_belongs_to_the_main_manager(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    assert state(await apply_main(cluster, owner)) == (0, Writer.MAIN)


async def test_the_three_applies_hand_the_count_to_the_scaler(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    await apply_main(cluster, owner)
    await scale(cluster, owner, 0)
    assert state(await read(cluster, owner)) == (0, Writer.SCALER)
    assert state(await apply_main(cluster, owner)) == (0, Writer.SCALER)


@pytest.mark.parametrize("crashes", [0, 1, 2, 3])
async def test_a_crash_after_any_apply_ends_in_the_same_state(
    cluster: kube.KubeCluster, owner: Owner, crashes: int
) -> None:
    steps: list[Callable[[], Awaitable[object]]] = [
        lambda: apply_main(cluster, owner),
        lambda: scale(cluster, owner, 2),
        lambda: apply_main(cluster, owner, "engine:2"),
    ]
    for step in [*steps[:crashes], *steps]:
        await step()
    assert state(await read(cluster, owner)) == (2, Writer.SCALER)


async def test_leaving_replicas_out_too_early_would_reset_them_to_one(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    live = await apply_main(cluster, owner)
    body = owner.manifest(None, live["metadata"]["uid"])
    reset = await children.Children(cluster).apply_deployment(owner.key, live, body)
    assert state(reset) == (1, Writer.NOBODY)


async def test_the_first_scale_needs_force_and_later_ones_do_not(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    await apply_main(cluster, owner)
    body = {"metadata": {"name": owner.key.name}, "spec": {"replicas": 0}}
    with pytest.raises(errors.Conflict):
        await cluster.apply(
            ports.DEPLOYMENTS,
            owner.key.namespace,
            owner.key.name,
            body,
            manager=names.SCALER,
            subresource="scale",
        )
    await scale(cluster, owner, 1)
    await scale(cluster, owner, 3)
    assert state(await read(cluster, owner)) == (3, Writer.SCALER)


async def test_a_stale_main_apply_with_replicas_changes_nothing(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    live = await apply_main(cluster, owner)
    await scale(cluster, owner, 2)
    stale = owner.manifest(0, live["metadata"]["uid"])
    with pytest.raises(errors.Conflict):
        await children.Children(cluster).apply_deployment(owner.key, live, stale)
    assert state(await read(cluster, owner)) == (2, Writer.SCALER)


async def test_kubectl_scale_is_seen_as_foreign_and_taken_back_by_force_only(
    cluster: kube.KubeCluster, owner: Owner, kubectl: Kubectl
) -> None:
    await apply_main(cluster, owner)
    await scale(cluster, owner, 2)
    kubectl("-n", owner.key.namespace, "scale", f"deployment/{owner.key.name}", "--replicas=5")
    live = await read(cluster, owner)
    assert state(live) == (5, Writer.FOREIGN)
    assert replica_owner.foreign_managers(live) == ("kubectl",)
    with pytest.raises(errors.Conflict):
        await children.Children(cluster).scale(owner.key, live, 2)
    await children.Children(cluster).retake(owner.key, live, 2)
    assert state(await read(cluster, owner)) == (2, Writer.SCALER)


async def test_taking_over_a_count_without_changing_it_shares_it_until_the_next_write(
    cluster: kube.KubeCluster, owner: Owner, kubectl: Kubectl
) -> None:
    await apply_main(cluster, owner)
    await scale(cluster, owner, 2)
    kubectl("-n", owner.key.namespace, "scale", f"deployment/{owner.key.name}", "--replicas=5")
    await children.Children(cluster).retake(owner.key, await read(cluster, owner), 5)
    live = await read(cluster, owner)
    assert replica_owner.foreign_managers(live) == ("kubectl",)
    await children.Children(cluster).retake(owner.key, live, 3)
    assert state(await read(cluster, owner)) == (3, Writer.SCALER)


async def test_an_edit_of_the_deployment_is_foreign_too_and_survives_a_main_apply(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    await apply_main(cluster, owner)
    await scale(cluster, owner, 2)
    patch = {"spec": {"replicas": 7}}
    await cluster.patch(
        ports.DEPLOYMENTS, owner.key.namespace, owner.key.name, patch, manager="kubectl-edit"
    )
    assert state(await apply_main(cluster, owner, "engine:2")) == (7, Writer.FOREIGN)


async def test_a_user_who_scales_between_creation_and_hand_over_keeps_the_count_until_the_retake(
    cluster: kube.KubeCluster, owner: Owner, kubectl: Kubectl
) -> None:
    await apply_main(cluster, owner)
    kubectl("-n", owner.key.namespace, "scale", f"deployment/{owner.key.name}", "--replicas=4")
    assert state(await apply_main(cluster, owner, "engine:2")) == (4, Writer.FOREIGN)


async def test_a_deployment_deleted_meanwhile_does_not_come_back_with_one_replica(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    await apply_main(cluster, owner)
    await scale(cluster, owner, 0)
    live = await read(cluster, owner)
    await cluster.delete(ports.DEPLOYMENTS, owner.key.namespace, owner.key.name)
    body = owner.manifest(None, live["metadata"]["uid"])
    with pytest.raises(errors.Conflict):
        await children.Children(cluster).apply_deployment(owner.key, live, body)
    with pytest.raises(errors.NotFound):
        await read(cluster, owner)


async def test_a_deployment_replaced_meanwhile_is_not_scaled(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    live = await apply_main(cluster, owner)
    await cluster.delete(ports.DEPLOYMENTS, owner.key.namespace, owner.key.name)
    await apply_main(cluster, owner)
    with pytest.raises(errors.Conflict):
        await children.Children(cluster).retake(owner.key, live, 5)
    assert state(await read(cluster, owner)) == (0, Writer.MAIN)


async def test_somebody_elses_deployment_of_the_same_name_is_left_alone(
    cluster: kube.KubeCluster, owner: Owner
) -> None:
    theirs = owner.manifest(3)
    del theirs["metadata"]["ownerReferences"]
    theirs["metadata"]["labels"] = {names.LABEL_MANAGED_BY: "them"}
    await cluster.apply(
        ports.DEPLOYMENTS, owner.key.namespace, owner.key.name, theirs, manager="them"
    )
    with pytest.raises(children.ForeignObject, match="belongs to somebody else"):
        await children.Children(cluster).create_deployment(owner.key, owner.manifest(0))


async def test_a_rollout_on_a_full_pool_replaces_its_only_replica_by_going_without(
    cluster: kube.KubeCluster, owner: Owner, kubectl: Kubectl
) -> None:
    node = f"full-{owner.key.namespace}"
    await cluster.create(ports.NODES, None, gpu_node(node))
    kubelet = asyncio.create_task(play_kubelet(cluster, node))
    try:
        await children.Children(cluster).create_deployment(
            owner.key, on_node(owner.manifest(0), node)
        )
        await scale(cluster, owner, 1)
        await only_image(cluster, owner, "engine:1")
        live = await read(cluster, owner)
        body = owner.manifest(None, live["metadata"]["uid"], "engine:2", surge=0)
        await children.Children(cluster).apply_deployment(owner.key, live, on_node(body, node))
        await only_image(cluster, owner, "engine:2")
        assert state(await read(cluster, owner)) == (1, Writer.SCALER)
    finally:
        kubelet.cancel()
        await asyncio.gather(kubelet, return_exceptions=True)
        kubectl("-n", owner.key.namespace, "delete", "node", node, "--wait=false")


def on_node(body: dict[str, Any], node: str) -> dict[str, Any]:
    pod = body["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"kubernetes.io/hostname": node}
    pod["tolerations"] = [{"key": node, "operator": "Exists"}]
    return body


def gpu_node(name: str) -> dict[str, Any]:
    room = {"cpu": "8", "memory": "32Gi", "pods": "10", "nvidia.com/gpu": "1"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "up"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": name, "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


async def play_kubelet(cluster: ports.Cluster, node: str) -> None:
    """Every pod of the node is ready at once, and gone as soon as it is deleted."""
    seen: set[str] = set()
    async for event in cluster.watch(ports.PODS, None, field_selector=f"spec.nodeName={node}"):
        metadata = event.object.get("metadata", {})
        if event.change in (ports.Change.SYNCED, ports.Change.DELETED):
            continue
        name, namespace = metadata["name"], metadata["namespace"]
        if "deletionTimestamp" in metadata:
            with contextlib.suppress(errors.NotFound):
                await cluster.delete(ports.PODS, namespace, name, grace_s=0)
        elif metadata["uid"] not in seen:
            seen.add(metadata["uid"])
            conditions = [{"type": "Ready", "status": "True"}]
            status = {"phase": "Running", "conditions": conditions}
            await cluster.patch(
                ports.PODS, namespace, name, {"status": status}, subresource="status"
            )


async def only_image(cluster: ports.Cluster, owner: Owner, image: str) -> None:
    """Wait until exactly one pod is there, ready and not leaving, with that image."""
    found: list[tuple[str, bool]] = []
    for _ in range(600):
        selector = labels.selector_text(owner.key.name)
        listed, _version = await cluster.list(
            ports.PODS, owner.key.namespace, label_selector=selector
        )
        found = [(pod["spec"]["containers"][0]["image"], stays(pod)) for pod in listed]
        if found == [(image, True)]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited in vain for one ready pod of {image}; last seen: {found}")


def stays(pod: ports.Object) -> bool:
    """Whether it is ready, and was not told to end."""
    return pods.is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
