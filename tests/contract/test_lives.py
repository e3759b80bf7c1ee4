"""What every ports.Cluster does alike with objects that come, go and come back."""

import asyncio
from typing import Any

import pytest

from modelserve import errors, ports

NAMESPACE = "default"
DEADLINE_REAL_S = 20.0
OTHER = {"metadata": {"uid": "6839e6d4-0bc4-4e93-9c82-3b523b874994"}, "data": {"a": "1"}}


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "engine", "image": "engine:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


async def gone(cluster: ports.Cluster, resource: ports.Resource, name: str) -> None:
    async with asyncio.timeout(DEADLINE_REAL_S):
        while True:
            try:
                await cluster.get(resource, NAMESPACE, name)
            except errors.NotFound:
                return
            await asyncio.sleep(0.05)


async def test_a_name_that_comes_back_is_another_object(cluster: ports.Cluster, name: str) -> None:
    first = await cluster.create(ports.CONFIG_MAPS, NAMESPACE, config_map(name))
    await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name)
    await gone(cluster, ports.CONFIG_MAPS, name)
    second = await cluster.create(ports.CONFIG_MAPS, NAMESPACE, config_map(name))
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    versions = [int(each["metadata"]["resourceVersion"]) for each in (first, second)]
    assert versions == sorted(set(versions))


async def test_an_apply_that_names_a_uid_makes_no_new_object(
    cluster: ports.Cluster, name: str
) -> None:
    """So a Deployment that somebody deleted does not come back by our apply."""
    with pytest.raises(errors.Conflict):
        await cluster.apply(ports.CONFIG_MAPS, NAMESPACE, name, OTHER, manager="main")
    with pytest.raises(errors.NotFound):
        await cluster.get(ports.CONFIG_MAPS, NAMESPACE, name)


async def test_no_write_that_names_another_uid_changes_an_object(
    cluster: ports.Cluster, name: str
) -> None:
    await cluster.create(ports.CONFIG_MAPS, NAMESPACE, config_map(name))
    with pytest.raises(errors.Conflict):
        await cluster.apply(ports.CONFIG_MAPS, NAMESPACE, name, OTHER, manager="main")
    with pytest.raises(errors.Conflict):
        await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, OTHER)
    assert "data" not in await cluster.get(ports.CONFIG_MAPS, NAMESPACE, name)


async def test_a_generated_name_begins_as_asked(cluster: ports.Cluster, name: str) -> None:
    body = {"metadata": {"generateName": "made-"}}
    made = [await cluster.create(ports.CONFIG_MAPS, NAMESPACE, body) for _ in range(2)]
    names = {each["metadata"]["name"] for each in made}
    assert len(names) == 2
    assert all(each.startswith("made-") for each in names)


async def test_a_pod_begins_without_the_status_it_was_given(
    cluster: ports.Cluster, name: str
) -> None:
    body = {**pod(name, nodeName="nowhere"), "status": {"podIP": "10.9.9.9"}}
    made = await cluster.create(ports.PODS, NAMESPACE, body)
    assert "podIP" not in made.get("status", {})
    await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)


async def test_a_node_keeps_the_status_it_was_given(cluster: ports.Cluster, name: str) -> None:
    body = {"metadata": {"name": name}, "status": {"allocatable": {"example.com/gpu": "8"}}}
    made = await cluster.create(ports.NODES, None, body)
    assert made["status"]["allocatable"] == {"example.com/gpu": "8"}
    await cluster.delete(ports.NODES, None, name)


async def test_a_second_deletion_only_shortens_the_grace(cluster: ports.Cluster, name: str) -> None:
    body = pod(name, nodeName="nowhere", terminationGracePeriodSeconds=60)
    await cluster.create(ports.PODS, NAMESPACE, body)
    for grace_s, left_s in ((None, 60), (5, 5), (50, 5)):
        await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=grace_s)
        metadata = (await cluster.get(ports.PODS, NAMESPACE, name))["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == left_s
    await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)
    await gone(cluster, ports.PODS, name)


async def test_pods_of_one_node_are_selected_by_its_name(cluster: ports.Cluster, name: str) -> None:
    for node in ("here", "there"):
        body = pod(f"{name}-{node}", nodeName=f"{name}-{node}")
        await cluster.create(ports.PODS, NAMESPACE, body)
    found, _ = await cluster.list(
        ports.PODS, NAMESPACE, field_selector=f"spec.nodeName={name}-here"
    )
    assert [each["metadata"]["name"] for each in found] == [f"{name}-here"]
    for node in ("here", "there"):
        await cluster.delete(ports.PODS, NAMESPACE, f"{name}-{node}", grace_s=0)


async def test_a_list_is_in_order_of_names(cluster: ports.Cluster, name: str) -> None:
    for n in "bca":
        await cluster.create(
            ports.CONFIG_MAPS, NAMESPACE, config_map(f"{name}-{n}", labels={"test": name})
        )
    found, _ = await cluster.list(ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name}")
    assert [each["metadata"]["name"][-1] for each in found] == ["a", "b", "c"]


async def test_what_is_answered_is_a_copy(cluster: ports.Cluster, name: str) -> None:
    made = await cluster.create(ports.CONFIG_MAPS, NAMESPACE, config_map(name))
    made["metadata"]["labels"] = {"changed": "by-hand"}
    live = await cluster.get(ports.CONFIG_MAPS, NAMESPACE, name)
    assert "labels" not in live["metadata"]


async def test_an_answer_about_the_count_tells_of_whom_and_as_of_when(
    cluster: ports.Cluster, name: str
) -> None:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template, "replicas": 0}
    made = await cluster.apply(
        ports.DEPLOYMENTS, NAMESPACE, name, {"spec": {**spec, "paused": True}}, manager="main"
    )
    for count in (3, 0):
        answer = await cluster.apply(
            ports.DEPLOYMENTS,
            NAMESPACE,
            name,
            {"spec": {"replicas": count}},
            manager="scaler",
            force=True,
            subresource="scale",
        )
        assert answer["metadata"]["uid"] == made["metadata"]["uid"]
        assert answer["spec"].get("replicas", 0) == count
        assert int(answer["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    await cluster.delete(ports.DEPLOYMENTS, NAMESPACE, name)


async def test_an_eviction_deletes_the_pod_it_means_and_no_other(
    cluster: ports.Cluster, name: str
) -> None:
    await cluster.create(ports.PODS, NAMESPACE, pod(name, nodeName="nowhere"))
    where = ports.eviction(name)
    with pytest.raises(errors.Conflict):
        await cluster.create(where, NAMESPACE, ports.eviction_body(name, NAMESPACE, "another"))
    assert "deletionTimestamp" not in (await cluster.get(ports.PODS, NAMESPACE, name))["metadata"]
    await cluster.create(where, NAMESPACE, ports.eviction_body(name, NAMESPACE))
    assert (await cluster.get(ports.PODS, NAMESPACE, name))["metadata"]["deletionTimestamp"]
    await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)
