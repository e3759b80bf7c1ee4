"""A list-watch against servers on their bad days."""

import asyncio
import random
from typing import Any

import pytest

from modelserve import ports
from modelserve.adapters import clock, kube, watch
from modelserve.testing import scripted

SELECTION = watch.Selection(ports.CONFIG_MAPS, "default")
DEADLINE_REAL_S = 10.0


class EagerClock(clock.SystemClock):
    """Does not wait, but keeps how long it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep_real(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


def item(name: str, version: int, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid or name}
    return {"metadata": {**metadata, "resourceVersion": str(version)}}


def listing(version: int, *items: dict[str, Any], resume: str = "") -> scripted.Answer:
    metadata = {"resourceVersion": str(version), "continue": resume}
    return scripted.respond(200, {"metadata": metadata, "items": list(items)})


def event(kind: str, name: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": item(name, version)}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
SILENCE = scripted.stream(then="silence")


async def follow(
    cluster: kube.KubeCluster, count: int, *, silence_real_s: float = 30.0
) -> tuple[list[str], EagerClock]:
    """The first events in short: ``ADDED a 1``."""
    eager = EagerClock()
    events = watch.ListWatch(cluster, SELECTION, eager, random.Random(1), silence_real_s)
    async with asyncio.timeout(DEADLINE_REAL_S):
        told = [await anext(events) for _ in range(count)]
    await events.aclose()
    return [
        " ".join((e.change, e.object["metadata"].get("name", ""), _version(e))) for e in told
    ], eager


def _version(told: ports.WatchEvent) -> str:
    return str(told.object["metadata"]["resourceVersion"])


def asked(server: scripted.ScriptedServer, key: str) -> list[str]:
    return [request.query.get(key, "") for request in server.requests]


async def test_a_list_comes_in_pages(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [listing(5, item("a", 1), resume="more"), listing(5, item("b", 2)), SILENCE]
    told, _ = await follow(cluster, 3)
    assert told == ["ADDED a 1", "ADDED b 2", "SYNCED  5"]
    assert asked(server, "continue")[:2] == ["", "more"]
    assert asked(server, "limit")[0] == "500"


async def test_a_page_too_old_begins_the_list_again(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    gone = scripted.respond(410, {"message": "continue token too old"})
    server.script = [listing(5, item("a", 1), resume="more"), gone, listing(6, item("a", 1))]
    told, _ = await follow(cluster, 2)
    assert told == ["ADDED a 1", "SYNCED  6"]


async def test_a_dropped_watch_goes_on_where_it_was(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [
        listing(5),
        scripted.stream(event("ADDED", "a", 6), bookmark(9), b'{"type": "MOD', then="drop"),
        scripted.stream(event("MODIFIED", "a", 10), then="silence"),
    ]
    told, _ = await follow(cluster, 3)
    assert told == ["SYNCED  5", "ADDED a 6", "MODIFIED a 10"]
    assert asked(server, "resourceVersion") == ["", "5", "9"]
    assert asked(server, "allowWatchBookmarks")[1:] == ["true", "true"]


async def test_a_line_cut_by_a_clean_end_is_asked_for_again(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [
        listing(5),
        scripted.stream(event("ADDED", "a", 6), b'{"type": "MODIFIED", "obj'),
        scripted.stream(event("MODIFIED", "a", 7), then="silence"),
    ]
    told, _ = await follow(cluster, 3)
    assert told == ["SYNCED  5", "ADDED a 6", "MODIFIED a 7"]
    assert asked(server, "resourceVersion")[2] == "6"


@pytest.mark.parametrize("how", ["status", "object"])
async def test_a_version_too_old_lists_again_and_tells_the_difference(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer, how: str
) -> None:
    expired = scripted.stream(EXPIRED) if how == "object" else scripted.respond(410, {})
    before = [item(n, 1) for n in ("same", "gone", "changed", "again")]
    after = [item("same", 1), item("changed", 8), item("again", 9, uid="other"), item("new", 9)]
    server.script = [listing(5, *before), expired, listing(9, *after), SILENCE]
    told, _ = await follow(cluster, 11)
    assert told[5:] == [
        *("DELETED gone 1", "DELETED again 1", "MODIFIED changed 8"),
        *("ADDED again 9", "ADDED new 9", "SYNCED  9"),
    ]


async def test_an_error_in_the_stream_is_waited_out(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    trouble = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd"}}
    server.script = [
        listing(5),
        scripted.stream(trouble),
        scripted.stream(event("ADDED", "a", 6), then="silence"),
    ]
    told, eager = await follow(cluster, 2)
    assert told == ["SYNCED  5", "ADDED a 6"]
    assert len(eager.pauses) == 1


async def test_a_silent_watch_is_opened_anew(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [
        listing(5),
        SILENCE,
        scripted.stream(event("ADDED", "a", 6), then="silence"),
    ]
    told, _ = await follow(cluster, 2, silence_real_s=0.05)
    assert told == ["SYNCED  5", "ADDED a 6"]


async def test_pauses_between_failing_lists_grow_and_heed_the_server(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    failing = [scripted.respond(500, {"message": "no"})] * 3
    busy = scripted.respond(429, {"message": "busy"}, {"Retry-After": "7"})
    denied = scripted.respond(403, {"message": "not yet"})
    server.script = [*failing, busy, denied, listing(5)]
    told, eager = await follow(cluster, 1)
    assert told == ["SYNCED  5"]
    for pause, step in zip(eager.pauses[:3], (0.1, 0.2, 0.4), strict=True):
        assert step / 2 <= pause <= step
    assert eager.pauses[3] == 7.0


async def test_an_unreachable_server_is_tried_again(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    async def drop(request: Any) -> Any:
        request.transport.abort()

    server.script = [drop, drop, listing(5)]
    told, _ = await follow(cluster, 1)
    assert told == ["SYNCED  5"]


async def test_a_watch_closed_without_a_word_is_not_reopened_in_a_hurry(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [listing(5), *[scripted.stream()] * 4, scripted.stream(event("ADDED", "a", 6))]
    _, eager = await follow(cluster, 2)
    assert len(eager.pauses) == 4
    assert eager.pauses[3] > eager.pauses[0]


async def test_a_cancelled_reader_leaves_nothing_open(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [listing(5), SILENCE]
    events = cluster.watch(ports.CONFIG_MAPS, "default")
    await anext(events)
    reading = asyncio.ensure_future(anext(events))
    await server.asked(2)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    with pytest.raises(StopAsyncIteration):
        await anext(events)
