"""A store kept by a watch."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import ports, testing
from modelserve.adapters import cache


@contextlib.asynccontextmanager
async def running(store: cache.Store) -> AsyncIterator[cache.Store]:
    task = asyncio.create_task(store.run())
    await store.synced.wait()
    yield store
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def configure(cluster: testing.MemoryCluster, name: str, **data: str) -> ports.Object:
    return await cluster.apply(ports.CONFIG_MAPS, "ns", name, {"data": data}, manager="m")


def names(items: Any) -> list[str]:
    return sorted(item["metadata"]["name"] for item in items)


async def test_it_holds_what_is_there_once_synced() -> None:
    cluster = testing.MemoryCluster()
    await configure(cluster, "a")
    async with running(cache.Store(cluster, ports.CONFIG_MAPS)) as store:
        assert names(store.items()) == ["a"]
        assert store.get("ns", "a") is not None
        assert store.get("ns", "b") is None
        assert store.get(None, "a") is None


async def test_callbacks_get_the_old_and_the_new() -> None:
    cluster = testing.MemoryCluster()
    told: list[tuple[Any, Any]] = []
    store = cache.Store(cluster, ports.CONFIG_MAPS)
    store.on_change(lambda old, new: told.append((old and old["data"], new and new["data"])))
    async with running(store):
        await configure(cluster, "a", x="1")
        await configure(cluster, "a", x="2")
        await cluster.delete(ports.CONFIG_MAPS, "ns", "a")
        await testing.settle()
    assert told == [(None, {"x": "1"}), ({"x": "1"}, {"x": "2"}), ({"x": "2"}, None)]


async def test_a_late_callback_hears_of_what_is_there() -> None:
    cluster = testing.MemoryCluster()
    await configure(cluster, "a")
    told: list[Any] = []
    async with running(cache.Store(cluster, ports.CONFIG_MAPS)) as store:
        store.on_change(lambda old, new: told.append((old, new and new["metadata"]["name"])))
    assert told == [(None, "a")]


async def test_a_failing_callback_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    cluster = testing.MemoryCluster()
    told: list[Any] = []
    store = cache.Store(cluster, ports.CONFIG_MAPS)
    store.on_change(lambda old, new: 1 / 0)  # type: ignore[arg-type]
    store.on_change(lambda old, new: told.append(new))
    await configure(cluster, "a")
    async with running(store):
        assert names(told) == ["a"]
    assert "callback" in caplog.text


async def test_an_index_follows_each_change() -> None:
    cluster = testing.MemoryCluster()
    store = cache.Store(
        cluster, ports.CONFIG_MAPS, indexes={"colour": lambda o: [o["data"]["colour"]]}
    )
    async with running(store):
        await configure(cluster, "a", colour="red")
        await configure(cluster, "b", colour="red")
        await configure(cluster, "a", colour="blue")
        await testing.settle()
        assert names(store.by_index("colour", "red")) == ["b"]
        assert names(store.by_index("colour", "blue")) == ["a"]
        await cluster.delete(ports.CONFIG_MAPS, "ns", "b")
        await testing.settle()
        assert store.by_index("colour", "red") == ()


class Full:
    """A cluster whose watch has a hundred objects to tell, all of them there at once."""

    async def watch(self, *selection: Any, **selectors: str) -> AsyncIterator[ports.WatchEvent]:
        for number in range(100):
            item = {"metadata": {"name": f"n-{number}", "resourceVersion": str(number)}}
            yield ports.WatchEvent(ports.Change.ADDED, item)
        await asyncio.Event().wait()


async def test_others_get_their_turn_while_much_is_told_at_once() -> None:
    store = cache.Store(Full(), ports.NODES, slice_real_s=0.0)  # type: ignore[arg-type]
    task = asyncio.create_task(store.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(store) < 100
    await testing.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def node(name: str) -> ports.WatchEvent:
    """As it comes off the wire: no string of it is another's."""
    text = '{"metadata": {"name": "%s", "labels": {"zone-name": "far away"}}, "l": ["far away", 1]}'
    return ports.WatchEvent(ports.Change.ADDED, json.loads(text % name))


def test_objects_that_are_alike_share_their_strings() -> None:
    store = cache.Store(testing.MemoryCluster(), ports.NODES, alike=True)
    store.handle(node("a"))
    store.handle(node("b"))
    (first, second) = (item["metadata"]["labels"] for item in store.items())
    assert first == {"zone-name": "far away"}
    assert first["zone-name"] is second["zone-name"]
    assert [item["l"] for item in store.items()] == [["far away", 1]] * 2
