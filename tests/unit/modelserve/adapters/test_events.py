"""Kubernetes Events: aggregated, rationed, and never anybody's trouble."""

import asyncio
from typing import Any

import pytest

from modelserve import errors, ports, testing
from modelserve.adapters import events
from modelserve.testing import apiserver

SUBJECT: ports.Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
}


async def written(cluster: testing.MemoryCluster) -> list[ports.Object]:
    found, _ = await cluster.list(ports.EVENTS)
    return list(found)


async def flushed(
    sink: events.EventSink, cluster: testing.MemoryCluster
) -> list[tuple[Any, Any, Any]]:
    await sink.flush()
    return [(e["reason"], e["message"], e["count"]) for e in await written(cluster)]


def make() -> tuple[testing.MemoryCluster, testing.ManualClock, events.EventSink]:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    return cluster, clock, events.EventSink(cluster, "kubelet", clock, host="node-1")


async def test_an_event_says_who_about_what() -> None:
    cluster, _, sink = make()
    sink.emit(SUBJECT, "Normal", "Pulled", "pulled it", field_path="spec.containers{engine}")
    await sink.flush()
    [event] = await written(cluster)
    assert event["metadata"]["namespace"] == "ns"
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "a",
        "uid": "u",
        "resourceVersion": "5",
        "fieldPath": "spec.containers{engine}",
    }
    assert event["source"] == {"component": "kubelet", "host": "node-1"}
    assert (event["type"], event["reason"]) == ("Normal", "Pulled")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"
    assert (event["reportingComponent"], event["reportingInstance"]) == ("kubelet", "node-1")


async def test_the_same_again_counts_up() -> None:
    cluster, clock, sink = make()
    for _ in range(3):
        sink.emit(SUBJECT, "Warning", "BackOff", "again")
        await sink.flush()
        await clock.advance(1)
    assert await flushed(sink, cluster) == [("BackOff", "again", 3)]
    [event] = await written(cluster)
    assert event["lastTimestamp"] > event["firstTimestamp"]


async def test_another_message_or_place_is_another_event() -> None:
    cluster, _, sink = make()
    sink.emit(SUBJECT, "Normal", "Pulled", "one")
    sink.emit(SUBJECT, "Normal", "Pulled", "two")
    sink.emit(SUBJECT, "Normal", "Pulled", "two", field_path="spec.containers{b}")
    assert len(await flushed(sink, cluster)) == 3


async def test_an_event_that_went_meanwhile_is_written_anew() -> None:
    cluster, _, sink = make()
    sink.emit(SUBJECT, "Normal", "Pulled", "one")
    await sink.flush()
    [event] = await written(cluster)
    await cluster.delete(ports.EVENTS, "ns", event["metadata"]["name"])
    sink.emit(SUBJECT, "Normal", "Pulled", "one")
    assert await flushed(sink, cluster) == [("Pulled", "one", 1)]


async def test_a_talkative_subject_is_rationed_and_the_others_are_not() -> None:
    cluster, clock, sink = make()
    other = {**SUBJECT, "metadata": {**SUBJECT["metadata"], "name": "b"}}
    for n in range(events.PER_MINUTE + 5):
        sink.emit(SUBJECT, "Normal", "Loud", str(n))
    sink.emit(other, "Normal", "Quiet", "x")
    assert len(await flushed(sink, cluster)) == events.PER_MINUTE + 1
    assert sink.dropped == 5
    await clock.advance(61)
    sink.emit(SUBJECT, "Normal", "Loud", "later")
    assert len(await flushed(sink, cluster)) == events.PER_MINUTE + 2


async def test_a_full_queue_drops_instead_of_growing() -> None:
    _, _, sink = make()
    for n in range(events.QUEUE_LIMIT + 3):
        subject = {**SUBJECT, "metadata": {"name": f"p{n}", "namespace": "ns"}}
        sink.emit(subject, "Normal", "R", "m")
    assert sink.dropped == 3


async def test_events_of_cluster_scoped_objects_live_in_default() -> None:
    cluster, _, sink = make()
    sink.emit({"kind": "Node", "metadata": {"name": "n"}}, "Normal", "Starting", "m")
    await sink.flush()
    assert [e["metadata"]["namespace"] for e in await written(cluster)] == ["default"]


@pytest.mark.parametrize(
    "error", [errors.Forbidden("no"), errors.NotFound("no"), RuntimeError("bug")], ids=repr
)
async def test_a_refused_event_is_dropped_and_the_next_one_written(error: Exception) -> None:
    cluster, _, sink = make()

    def refuse_once(call: apiserver.Call) -> None:
        cluster.before_call = lambda call: None
        raise error

    cluster.before_call = refuse_once
    sink.emit(SUBJECT, "Normal", "First", "m")
    sink.emit(SUBJECT, "Normal", "Second", "m")
    assert await flushed(sink, cluster) == [("Second", "m", 1)]


async def test_an_event_waits_out_a_short_outage() -> None:
    cluster, clock, sink = make()

    def away(call: apiserver.Call) -> None:
        raise errors.Unavailable("away")

    cluster.before_call = away
    sink.emit(SUBJECT, "Normal", "Late", "m")
    task = asyncio.create_task(sink.run())
    await clock.advance(1)
    cluster.before_call = lambda call: None
    await clock.advance(10)
    assert [e["reason"] for e in await written(cluster)] == ["Late"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_is_queued_is_written_at_the_end() -> None:
    cluster, _, sink = make()
    task = asyncio.create_task(sink.run())
    await testing.settle()
    sink.emit(SUBJECT, "Normal", "Last", "m")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [e["reason"] for e in await written(cluster)] == ["Last"]


async def test_a_subject_that_is_no_object_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    _, _, sink = make()
    sink.emit({}, "Normal", "R", "m")
    assert sink.dropped == 1
    assert "no object" in caplog.text


async def test_what_was_said_long_ago_is_not_remembered() -> None:
    _, clock, sink = make()
    for number in range(50):
        subject = {"kind": "Pod", "metadata": {"name": f"p-{number}", "namespace": "default"}}
        sink.emit(subject, "Normal", "Started", "started")
        await sink.flush()
        await clock.advance(events.AGGREGATE_REAL_S / 10)
    assert sink.remembered < 15
