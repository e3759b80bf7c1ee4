"""What every ports.Cluster does alike."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import errors, ports

NAMESPACE = "default"
DEADLINE_REAL_S = 20.0


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "engine", "image": "engine:1"}]},
            },
            **spec,
        }
    }


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "engine", "image": "engine:1"}], **spec},
    }


async def configure(
    cluster: ports.Cluster, name: str, data: dict[str, str], manager: str, *, force: bool = False
) -> ports.Object:
    return await cluster.apply(
        ports.CONFIG_MAPS, NAMESPACE, name, {"data": data}, manager=manager, force=force
    )


async def scale(
    cluster: ports.Cluster, name: str, count: int, manager: str = "scaler", *, force: bool = False
) -> ports.Object:
    return await cluster.apply(
        ports.DEPLOYMENTS,
        NAMESPACE,
        name,
        {"spec": {"replicas": count}},
        manager=manager,
        force=force,
        subresource="scale",
    )


async def deploy(cluster: ports.Cluster, name: str, **spec: Any) -> ports.Object:
    body = deployment(name, **spec)
    return await cluster.apply(ports.DEPLOYMENTS, NAMESPACE, name, body, manager="main")


async def next_change(events: AsyncIterator[ports.WatchEvent]) -> tuple[str, str]:
    async with asyncio.timeout(DEADLINE_REAL_S):
        event = await anext(events)
    return str(event.change), event.object["metadata"].get("name", "")


async def gone(cluster: ports.Cluster, resource: ports.Resource, name: str) -> None:
    async with asyncio.timeout(DEADLINE_REAL_S):
        with contextlib.suppress(errors.NotFound):
            while True:
                await cluster.get(resource, NAMESPACE, name)
                await asyncio.sleep(0.05)


async def test_an_absent_object_is_not_found(cluster: ports.Cluster, name: str) -> None:
    with pytest.raises(errors.NotFound, match=name):
        await cluster.get(ports.CONFIG_MAPS, NAMESPACE, name)
    with pytest.raises(errors.NotFound):
        await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name)
    with pytest.raises(errors.NotFound):
        await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, {"data": {"a": "1"}})
    with pytest.raises(errors.NotFound):
        await scale(cluster, name, 1)


async def test_a_name_can_be_created_once(cluster: ports.Cluster, name: str) -> None:
    created = await cluster.create(ports.CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name}})
    assert created["metadata"]["uid"]
    assert created["kind"] == "ConfigMap"
    with pytest.raises(errors.Conflict):
        await cluster.create(ports.CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name}})


async def test_a_list_is_selected_by_label_and_field(cluster: ports.Cluster, name: str) -> None:
    for n in "ab":
        body = {"metadata": {"name": f"{name}-{n}", "labels": {"test": name, "n": n}}}
        await cluster.create(ports.CONFIG_MAPS, NAMESPACE, body)
    found, version = await cluster.list(
        ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name},n in (b,c)"
    )
    assert [item["metadata"]["name"] for item in found] == [f"{name}-b"]
    assert int(version) >= int(found[0]["metadata"]["resourceVersion"])
    assert (found[0]["apiVersion"], found[0]["kind"]) == ("v1", "ConfigMap")
    found, _ = await cluster.list(
        ports.CONFIG_MAPS, NAMESPACE, field_selector=f"metadata.name={name}-a"
    )
    assert len(found) == 1


async def test_applying_the_same_again_changes_nothing(cluster: ports.Cluster, name: str) -> None:
    first = await configure(cluster, name, {"a": "1"}, "one")
    again = await configure(cluster, name, {"a": "1"}, "one")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_field_of_another_manager_is_a_conflict(cluster: ports.Cluster, name: str) -> None:
    await configure(cluster, name, {"a": "1", "b": "1"}, "one")
    await configure(cluster, name, {"b": "1", "c": "2"}, "two")
    with pytest.raises(errors.Conflict, match=r'conflict with "one".*\.data\.a'):
        await configure(cluster, name, {"a": "2", "b": "1", "c": "2"}, "two")


async def test_force_takes_a_field_away(cluster: ports.Cluster, name: str) -> None:
    await configure(cluster, name, {"a": "1"}, "one")
    taken = await configure(cluster, name, {"a": "2"}, "two", force=True)
    assert taken["data"] == {"a": "2"}
    with pytest.raises(errors.Conflict, match='conflict with "two"'):
        await configure(cluster, name, {"a": "1"}, "one")


async def test_a_field_no_longer_applied_goes_unless_another_owns_it(
    cluster: ports.Cluster, name: str
) -> None:
    await configure(cluster, name, {"a": "1", "b": "1", "c": "1"}, "one")
    await configure(cluster, name, {"b": "1"}, "two")
    left = await configure(cluster, name, {"c": "1"}, "one")
    assert left["data"] == {"b": "1", "c": "1"}


async def test_an_update_takes_the_fields_it_changes(cluster: ports.Cluster, name: str) -> None:
    await configure(cluster, name, {"a": "1", "b": "1"}, "one")
    await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, {"data": {"a": "2"}}, manager="hand")
    with pytest.raises(errors.Conflict, match=r'conflict with "hand".*\.data\.a'):
        await configure(cluster, name, {"a": "1", "b": "1"}, "one")
    left = await configure(cluster, name, {"b": "1"}, "one")
    assert left["data"] == {"a": "2", "b": "1"}


async def test_a_stale_replace_is_a_conflict(cluster: ports.Cluster, name: str) -> None:
    first = await configure(cluster, name, {"a": "1"}, "one")
    await configure(cluster, name, {"a": "2"}, "one")
    with pytest.raises(errors.Conflict):
        await cluster.replace(ports.CONFIG_MAPS, NAMESPACE, name, first)
    fresh = await cluster.get(ports.CONFIG_MAPS, NAMESPACE, name)
    replaced = await cluster.replace(
        ports.CONFIG_MAPS, NAMESPACE, name, {**fresh, "data": {"b": "3"}}
    )
    assert replaced["data"] == {"b": "3"}


async def test_a_patch_that_changes_nothing_makes_no_version(
    cluster: ports.Cluster, name: str
) -> None:
    first = await configure(cluster, name, {"a": "1"}, "one")
    patched = await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, {"data": {"a": "1"}})
    assert patched["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_null_in_a_merge_patch_removes(cluster: ports.Cluster, name: str) -> None:
    await configure(cluster, name, {"a": "1", "b": "1"}, "one")
    patched = await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, {"data": {"a": None}})
    assert patched["data"] == {"b": "1"}


async def test_a_json_patch_applies_only_if_its_tests_hold(
    cluster: ports.Cluster, name: str
) -> None:
    await configure(cluster, name, {"a": "1"}, "one")
    change = {"op": "replace", "path": "/data/a", "value": "2"}
    for tested in ("9", "1"):
        operations = [{"op": "test", "path": "/data/a", "value": tested}, change]
        patch = cluster.patch(
            ports.CONFIG_MAPS,
            NAMESPACE,
            name,
            operations,
            content_type="application/json-patch+json",
        )
        if tested == "9":
            with pytest.raises(errors.Invalid):
                await patch
        else:
            assert (await patch)["data"] == {"a": "2"}


async def test_replicas_left_out_become_one(cluster: ports.Cluster, name: str) -> None:
    created = await deploy(cluster, name, paused=True)
    assert created["spec"]["replicas"] == 1


async def test_the_count_passes_to_the_scaler_in_three_applies(
    cluster: ports.Cluster, name: str
) -> None:
    created = await deploy(cluster, name, replicas=0)
    assert created["spec"]["replicas"] == 0
    with pytest.raises(errors.Conflict, match=r'conflict with "main".*\.spec\.replicas'):
        await scale(cluster, name, 3)
    await scale(cluster, name, 0, force=True)
    released = await deploy(cluster, name)
    assert released["spec"]["replicas"] == 0
    written = await scale(cluster, name, 2)
    assert (written["kind"], written["spec"]["replicas"]) == ("Scale", 2)
    assert (await deploy(cluster, name))["spec"]["replicas"] == 2


async def test_a_count_let_go_before_the_scaler_owns_it_is_reset(
    cluster: ports.Cluster, name: str
) -> None:
    await deploy(cluster, name, replicas=0, paused=True)
    assert (await deploy(cluster, name, paused=True))["spec"]["replicas"] == 1


async def test_managed_fields_tell_who_owns_the_count(cluster: ports.Cluster, name: str) -> None:
    await deploy(cluster, name, replicas=0)
    await scale(cluster, name, 0, force=True)
    await deploy(cluster, name)
    live = await cluster.get(ports.DEPLOYMENTS, NAMESPACE, name)
    owners = [
        (f["manager"], f["operation"], f.get("subresource", ""))
        for f in live["metadata"]["managedFields"]
        if "f:replicas" in f["fieldsV1"].get("f:spec", {})
    ]
    assert owners == [("scaler", "Apply", "scale")]


async def test_a_foreign_scale_makes_the_scaler_conflict(cluster: ports.Cluster, name: str) -> None:
    await deploy(cluster, name, replicas=0)
    await scale(cluster, name, 0, force=True)
    await cluster.patch(
        ports.DEPLOYMENTS,
        NAMESPACE,
        name,
        {"spec": {"replicas": 5}},
        subresource="scale",
        manager="kubectl",
    )
    with pytest.raises(errors.Conflict, match='conflict with "kubectl"'):
        await scale(cluster, name, 1)
    assert (await scale(cluster, name, 1, force=True))["spec"]["replicas"] == 1


async def test_status_and_spec_are_written_apart(cluster: ports.Cluster, name: str) -> None:
    await cluster.create(ports.PODS, NAMESPACE, pod(name, nodeName="nowhere"))
    both: dict[str, Any] = {
        "spec": {"activeDeadlineSeconds": 77},
        "status": {"podIP": "10.9.9.9", "podIPs": [{"ip": "10.9.9.9"}]},
    }
    main = await cluster.patch(ports.PODS, NAMESPACE, name, both)
    assert (main["spec"]["activeDeadlineSeconds"], "podIP" in main["status"]) == (77, False)
    both["spec"]["activeDeadlineSeconds"] = 55
    status = await cluster.patch(ports.PODS, NAMESPACE, name, both, subresource="status")
    assert status["spec"]["activeDeadlineSeconds"] == 77
    assert status["status"]["podIP"] == "10.9.9.9"
    await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)


async def test_only_the_specification_makes_a_new_generation(
    cluster: ports.Cluster, name: str
) -> None:
    first = await deploy(cluster, name, replicas=0, paused=True)
    labelled = await cluster.patch(
        ports.DEPLOYMENTS, NAMESPACE, name, {"metadata": {"labels": {"a": "b"}}}
    )
    changed = await deploy(cluster, name, replicas=0, paused=True, minReadySeconds=3)
    generations = [d["metadata"]["generation"] for d in (first, labelled, changed)]
    assert generations == [1, 1, 2]


async def test_conditions_of_a_status_are_merged_by_type(cluster: ports.Cluster, name: str) -> None:
    await cluster.create(ports.PODS, NAMESPACE, pod(name, nodeName="nowhere"))
    for manager in ("one", "two"):
        condition = {"type": f"example.com/{manager}", "status": "True"}
        body = {"status": {"conditions": [condition]}}
        live = await cluster.apply(
            ports.PODS, NAMESPACE, name, body, manager=manager, subresource="status"
        )
    types = {c["type"] for c in live["status"]["conditions"]}
    assert {"example.com/one", "example.com/two"} <= types
    await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)


async def test_an_item_no_longer_applied_goes_from_its_list(
    cluster: ports.Cluster, name: str
) -> None:
    body = deployment(name, replicas=0, paused=True)
    containers = body["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": "side:1", "env": [{"name": "A", "value": "1"}]})
    await cluster.apply(ports.DEPLOYMENTS, NAMESPACE, name, body, manager="main")
    containers.pop()
    containers[0]["env"] = [{"name": "B", "value": "2"}]
    live = await cluster.apply(ports.DEPLOYMENTS, NAMESPACE, name, body, manager="main")
    found = live["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["env"]) for c in found] == [("engine", [{"name": "B", "value": "2"}])]


async def test_only_the_object_with_that_uid_is_deleted(cluster: ports.Cluster, name: str) -> None:
    created = await configure(cluster, name, {}, "one")
    with pytest.raises(errors.Conflict):
        await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name, uid="another")
    await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name, uid=created["metadata"]["uid"])
    await gone(cluster, ports.CONFIG_MAPS, name)


async def test_only_the_version_that_was_seen_is_deleted(cluster: ports.Cluster, name: str) -> None:
    seen = (await configure(cluster, name, {"a": "1"}, "one"))["metadata"]["resourceVersion"]
    new = (await configure(cluster, name, {"a": "2"}, "one"))["metadata"]["resourceVersion"]
    with pytest.raises(errors.Conflict):
        await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name, resource_version=seen)
    await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name, resource_version=new)
    await gone(cluster, ports.CONFIG_MAPS, name)


async def test_a_bound_pod_waits_for_its_kubelet(cluster: ports.Cluster, name: str) -> None:
    body = pod(name, nodeName="nowhere", terminationGracePeriodSeconds=60)
    await cluster.create(ports.PODS, NAMESPACE, body)
    await cluster.delete(ports.PODS, NAMESPACE, name)
    metadata = (await cluster.get(ports.PODS, NAMESPACE, name))["metadata"]
    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 60
    await cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)
    await gone(cluster, ports.PODS, name)


async def test_a_finalizer_holds_a_deleted_object(cluster: ports.Cluster, name: str) -> None:
    body = {"metadata": {"name": name, "finalizers": ["example.com/hold"]}}
    await cluster.create(ports.CONFIG_MAPS, NAMESPACE, body)
    await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name)
    assert (await cluster.get(ports.CONFIG_MAPS, NAMESPACE, name))["metadata"]["deletionTimestamp"]
    await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, {"metadata": {"finalizers": None}})
    await gone(cluster, ports.CONFIG_MAPS, name)


async def test_what_a_deleted_object_owned_goes_too(cluster: ports.Cluster, name: str) -> None:
    owner = await configure(cluster, name, {}, "one")
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name,
        "uid": owner["metadata"]["uid"],
    }
    body = {"metadata": {"name": f"{name}-child", "ownerReferences": [reference]}}
    await cluster.create(ports.CONFIG_MAPS, NAMESPACE, body)
    await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name)
    await gone(cluster, ports.CONFIG_MAPS, f"{name}-child")
    with pytest.raises(errors.NotFound):
        await cluster.get(ports.CONFIG_MAPS, NAMESPACE, f"{name}-child")


async def test_a_watch_tells_what_is_there_and_then_each_change(
    cluster: ports.Cluster, name: str
) -> None:
    labels = {"test": name}
    await cluster.create(
        ports.CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name, "labels": labels}}
    )
    events = cluster.watch(ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name}")
    assert await next_change(events) == ("ADDED", name)
    assert await next_change(events) == ("SYNCED", "")
    await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, {"data": {"a": "1"}})
    assert await next_change(events) == ("MODIFIED", name)
    await cluster.delete(ports.CONFIG_MAPS, NAMESPACE, name)
    assert await next_change(events) == ("DELETED", name)
    await events.aclose()  # type: ignore[attr-defined]


async def test_leaving_a_selection_is_a_deletion_to_its_watch(
    cluster: ports.Cluster, name: str
) -> None:
    events = cluster.watch(ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name}")
    assert await next_change(events) == ("SYNCED", "")
    await configure(cluster, name, {}, "one")
    for label, change in ((name, "ADDED"), ("other", "DELETED")):
        body = {"metadata": {"labels": {"test": label}}}
        await cluster.patch(ports.CONFIG_MAPS, NAMESPACE, name, body)
        assert await next_change(events) == (change, name)
    await events.aclose()  # type: ignore[attr-defined]
