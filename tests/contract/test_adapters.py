"""The adapters that live on a cluster, against both implementations of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import cache, clock, demand, events, kube, leases, membership, timescale
from modelserve.api import names

NAMESPACE = "default"
DEADLINE_REAL_S = 20.0


@contextlib.asynccontextmanager
async def running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one) for one in work]
    try:
        async with asyncio.timeout(DEADLINE_REAL_S):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def told(changes: "asyncio.Queue[Any]", written: ports.Object) -> None:
    """Until a store has told of what was written, or of something later."""
    version = ports.resource_version(written)
    while ports.resource_version(await changes.get() or {}) < version:
        pass


async def test_a_store_sees_own_writes_by_their_version(cluster: ports.Cluster, name: str) -> None:
    store = cache.Store(cluster, ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name}")
    changes: asyncio.Queue[Any] = asyncio.Queue()
    store.on_change(lambda old, new: changes.put_nowait(new))
    async with running(store.run()):
        await store.synced.wait()
        for count in "12":
            body = {"metadata": {"labels": {"test": name}}, "data": {"count": count}}
            written = await cluster.apply(ports.CONFIG_MAPS, NAMESPACE, name, body, manager="m")
            await told(changes, written)
            found = store.get(NAMESPACE, name)
            assert found is not None
            assert found["data"] == {"count": count}


async def test_one_of_two_leads_and_the_other_follows(cluster: ports.Cluster, name: str) -> None:
    first, second = (
        leases.LeaderElection(
            cluster, NAMESPACE, name, identity, clock.SystemClock(), retry_real_s=0.05
        )
        for identity in ("first", "second")
    )
    async with first:
        waiting = asyncio.create_task(second.acquire())
        lease = await cluster.get(ports.LEASES, NAMESPACE, name)
        assert lease["spec"]["holderIdentity"] == "first"
        assert not waiting.done()
    async with asyncio.timeout(DEADLINE_REAL_S):
        await waiting
    lease = await cluster.get(ports.LEASES, NAMESPACE, name)
    assert lease["spec"]["holderIdentity"] == "second"


async def test_a_member_is_seen_and_its_leave_too(cluster: ports.Cluster, name: str) -> None:
    ours = clock.SystemClock()
    member = membership.Membership(cluster, NAMESPACE, name, "127.0.0.1:1", "e1", ours)
    async with demand.Gateways(cluster, NAMESPACE, "token", ours) as gateways:
        changes: asyncio.Queue[Any] = asyncio.Queue()
        gateways.leases.on_change(lambda old, new: changes.put_nowait(new))
        gone = asyncio.Event()
        gateways.leases.on_change(lambda old, new: gone.set() if new is None else None)
        async with running(gateways.run()):
            async with running(member.run()):
                await member.registered.wait()
                await told(changes, await cluster.get(ports.LEASES, NAMESPACE, name))
                assert gateways.silent() == [name]
            await gone.wait()
            assert gateways.silent() == []


async def test_events_are_accepted_and_counted(cluster: ports.Cluster, name: str) -> None:
    subject = await cluster.create(ports.CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name}})
    sink = events.EventSink(cluster, "kubelet", clock.SystemClock(), host="node-1")
    for _ in range(3):
        sink.emit(subject, "Warning", "BackOff", "again", field_path="spec.containers{engine}")
    await sink.flush()
    found, _ = await cluster.list(
        ports.EVENTS, NAMESPACE, field_selector=f"involvedObject.name={name},reason=BackOff"
    )
    assert [(e["count"], e["source"]["host"]) for e in found] == [(3, "node-1")]
    assert sink.dropped == 0


async def test_the_published_time_scale_binds(cluster: ports.Cluster) -> None:
    body = {"data": {names.TIME_SCALE_KEY: "60"}}
    await cluster.apply(ports.CONFIG_MAPS, NAMESPACE, names.TIME_CONFIG_MAP, body, manager="m")
    await timescale.check(cluster, NAMESPACE, 60.0)
    with pytest.raises(errors.InputError, match="--time-scale 60"):
        await timescale.check(cluster, NAMESPACE, 1.0)


@pytest.mark.cluster
async def test_an_unknown_field_is_refused_by_every_way_of_writing(
    api_server: kube.KubeCluster, name: str
) -> None:
    body = {"metadata": {"name": name}, "dat": {"a": "1"}}
    with pytest.raises(errors.Invalid, match="dat"):
        await api_server.apply(ports.CONFIG_MAPS, NAMESPACE, name, body, manager="m")
    with pytest.raises(errors.Invalid, match="dat"):
        await api_server.create(ports.CONFIG_MAPS, NAMESPACE, body)
    await api_server.create(ports.CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name}})
    with pytest.raises(errors.Invalid, match="dat"):
        await api_server.patch(ports.CONFIG_MAPS, NAMESPACE, name, body)


@pytest.mark.cluster
async def test_a_list_of_more_than_a_page_is_whole(api_server: kube.KubeCluster, name: str) -> None:
    async def create(n: int) -> None:
        metadata = {"name": f"{name}-{n}", "labels": {"test": name}}
        await api_server.create(ports.CONFIG_MAPS, NAMESPACE, {"metadata": metadata})

    await asyncio.gather(*(create(n) for n in range(510)))
    found, _ = await api_server.list(ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name}")
    assert len({item["metadata"]["name"] for item in found}) == 510


@pytest.mark.cluster
async def test_a_watch_survives_a_version_the_server_has_forgotten(
    api_server: kube.KubeCluster, name: str
) -> None:
    events_ = api_server.watch(ports.CONFIG_MAPS, NAMESPACE, label_selector=f"test={name}")
    async with asyncio.timeout(DEADLINE_REAL_S):
        assert (await anext(events_)).change is ports.Change.SYNCED
        events_._version = "1"
        body = {"metadata": {"name": name, "labels": {"test": name}}}
        await api_server.create(ports.CONFIG_MAPS, NAMESPACE, body)
        assert (await anext(events_)).change is ports.Change.ADDED
    await events_.aclose()
