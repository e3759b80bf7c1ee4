"""Writes of one pod: in order, newest only, until they succeed."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.api import names
from servelab.node.pods import writer, writes

POD = {"metadata": {"namespace": "default", "name": "p", "uid": "u-1"}}


class FakeCluster:
    """Notes what is written; fails first as told."""

    def __init__(self, failures: Sequence[Exception] = ()) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.failures = list(failures)
        self.patches = 0
        self.undeleted: Exception | None = None  # the answer to the next deletion
        self.uid = "u-1"  # of the pod of that name

    async def get(self, resource: ports.Resource, namespace: str | None, name: str) -> ports.Object:
        return {"metadata": {"uid": self.uid}}

    async def patch(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: Any,
        *,
        content_type: str = "",
        subresource: str = "",
        manager: str = "",
    ) -> ports.Object:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        assert subresource == "status"
        for kind, told in (
            ("annotations", body["metadata"].get("annotations")),
            ("status", body.get("status")),
        ):
            if told is not None:
                self.calls.append((kind, told))
        self.patches += 1
        return {"metadata": {"resourceVersion": str(len(self.calls))}}

    async def delete(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        self.calls.append(("delete", (grace_s, uid)))
        error, self.undeleted = self.undeleted, None
        if error is not None:
            raise error


def make(cluster: FakeCluster) -> writer.PodWriter:
    return writer.PodWriter(cluster, POD, writes.Statuses(4))  # type: ignore[arg-type]


async def finish(pod: writer.PodWriter) -> None:
    """Delete the pod, and write all that is asked for."""
    pod.delete()
    async with asyncio.timeout(10):
        await pod.run()


async def test_annotations_go_with_the_status_and_the_deletion_last() -> None:
    cluster = FakeCluster()
    pod = make(cluster)
    pod.status({"phase": "Failed"})
    pod.annotate({"a": "1"})
    await finish(pod)
    assert [kind for kind, _ in cluster.calls] == ["annotations", "status", "delete"]
    assert cluster.patches == 1


async def test_what_was_asked_for_during_a_write_is_written_after_it() -> None:
    cluster = FakeCluster()
    pod = make(cluster)
    pod.annotate({"a": "1", "b": "1"})
    writing = asyncio.create_task(pod.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    pod.annotate({"a": "2"})
    pod.delete()
    await writing
    assert cluster.calls[:2] == [("annotations", {"a": "1", "b": "1"}), ("annotations", {"a": "2"})]


async def test_only_the_newest_status_is_written() -> None:
    cluster = FakeCluster()
    pod = make(cluster)
    pod.status({"phase": "Pending"})
    pod.status({"phase": "Running"})
    await finish(pod)
    assert cluster.calls[0] == ("status", {"phase": "Running"})


async def test_the_deletion_is_of_this_very_pod_without_grace() -> None:
    cluster = FakeCluster()
    await finish(make(cluster))
    assert cluster.calls == [("delete", (0, "u-1"))]


@pytest.mark.parametrize("error", [errors.Unavailable("busy", 503), errors.Conflict("changed")])
async def test_what_failed_is_tried_again(error: Exception) -> None:
    cluster = FakeCluster([error])
    pod = make(cluster)
    pod.status({"phase": "Running"})
    await finish(pod)
    assert cluster.calls[0] == ("status", {"phase": "Running"})


async def test_a_deletion_that_the_server_had_no_time_for_is_tried_again() -> None:
    cluster = FakeCluster()
    cluster.undeleted = errors.Conflict("changed", 409)
    await finish(make(cluster))
    assert cluster.calls == [("delete", (0, "u-1"))] * 2


async def test_another_pod_of_the_same_name_is_left_alone() -> None:
    cluster = FakeCluster()
    cluster.undeleted, cluster.uid = errors.Conflict("another uid", 409), "u-2"
    await finish(make(cluster))
    assert cluster.calls == [("delete", (0, "u-1"))]


async def test_a_pod_that_is_gone_ends_the_writing() -> None:
    cluster = FakeCluster([errors.NotFound("gone", 404)])
    pod = make(cluster)
    pod.status({"phase": "Running"})
    await finish(pod)
    assert cluster.calls == []


async def test_what_the_server_refuses_is_left() -> None:
    cluster = FakeCluster([errors.Invalid("no", 422)])
    pod = make(cluster)
    pod.status({"phase": "Nonsense"})
    await finish(pod)
    assert cluster.calls == [("delete", (0, "u-1"))]


BAD_DAYS = [
    errors.Unavailable("away"),
    errors.Conflict("changed", 409),
    errors.Expired("too old", 410),
    errors.Unavailable("slow down", 429, "TooManyRequests", 3.0),
    errors.Unavailable("internal error", 500),
    errors.Forbidden("not yet", 403),
]


@pytest.mark.parametrize("error", BAD_DAYS, ids=str)
async def test_a_bad_day_of_the_api_server_loses_no_status(error: Exception) -> None:
    cluster = FakeCluster([error] * 20)
    pod, waits = patient(cluster)
    pod.status({"phase": "Running"})
    pod.annotate({"a": "1"})
    await finish(pod)
    assert cluster.calls[:2] == [("annotations", {"a": "1"}), ("status", {"phase": "Running"})]
    assert len(waits) == 20


async def test_pauses_grow_so_that_nothing_is_flooded() -> None:
    cluster = FakeCluster([errors.Unavailable("away")] * 10)
    pod, waits = patient(cluster)
    pod.status({"phase": "Running"})
    await finish(pod)
    assert sum(waits) > 10
    assert all(before < after for before, after in zip(waits[:5:2], waits[2:7:2], strict=True))


async def test_the_pause_is_what_the_server_asks_for() -> None:
    cluster = FakeCluster([errors.Unavailable("slow down", 429, "TooManyRequests", 7.0)])
    pod, waits = patient(cluster)
    pod.status({"phase": "Running"})
    await finish(pod)
    assert waits == [7.0]


async def test_a_status_that_came_while_the_server_was_away_is_the_one_that_is_written() -> None:
    cluster = FakeCluster([errors.Unavailable("away")])
    pod, _ = patient(cluster, lambda: pod.status({"phase": "Failed"}))
    pod.status({"phase": "Running"})
    await finish(pod)
    assert [told for kind, told in cluster.calls if kind == "status"] == [{"phase": "Failed"}]


def patient(
    cluster: FakeCluster, meanwhile: Callable[[], None] = lambda: None
) -> tuple[writer.PodWriter, list[float]]:
    """A writer that does not wait, but notes for how long it would have."""
    waits: list[float] = []

    async def sleep_real(seconds: float) -> None:
        waits.append(seconds)
        meanwhile()
        await asyncio.sleep(0)

    return (
        writer.PodWriter(
            cluster,  # type: ignore[arg-type]
            POD,
            writes.Statuses(4),
            sleep_real=sleep_real,
            rng=random.Random(1),
        ),
        waits,
    )


async def test_a_write_under_way_goes_on_to_its_answer_when_the_writer_is_closed() -> None:
    cluster, room = FakeCluster(), writes.Statuses(4)
    pod = writer.PodWriter(cluster, POD, room)  # type: ignore[arg-type]
    pod.status({"phase": "Running"})
    pod.delete()
    written = asyncio.create_task(pod.run())
    await asyncio.sleep(0)
    assert pod.sending
    pod.close()
    await written
    assert (cluster.calls, pod.sending) == ([("status", {"phase": "Running"})], False)


async def test_a_closed_writer_begins_no_write() -> None:
    cluster = FakeCluster()
    pod = make(cluster)
    pod.status({"phase": "Running"})
    pod.close()
    await finish(pod)
    assert cluster.calls == []


def told(message: str, reason: str = "WeightLoad", kind: str = names.CONDITION_STARTING) -> Any:
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}, condition]}


async def busy(room: writes.Statuses, until: asyncio.Event) -> None:
    async with room:
        await until.wait()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def among_many(
    cluster: FakeCluster, free: asyncio.Event
) -> tuple[writer.PodWriter, asyncio.Task[None], list[asyncio.Task[None]]]:
    """A writer that has told of progress once, while more than few write until ``free``."""
    room = writes.Statuses(patience_real_s=3600.0)
    pod = writer.PodWriter(cluster, POD, room)  # type: ignore[arg-type]
    pod.status(told("1 of 9 GB"))
    writing = asyncio.create_task(pod.run())
    await turns()
    others = [asyncio.create_task(busy(room, free)) for _ in range(writes.FEW + 1)]
    await turns()
    return pod, writing, others


FURTHER = [
    pytest.param(told("2 of 9 GB"), False, id="progress of a phase"),
    pytest.param(told("engine warm-up", "WarmUp"), True, id="the next phase"),
    pytest.param({**told("2 of 9 GB"), "phase": "Failed"}, True, id="something else as well"),
    pytest.param({**told("1 of 9 GB"), "podIP": "10.0.0.1"}, True, id="something more"),
    pytest.param(told("2 of 9 GB", kind="Ready"), True, id="the words of a kubelet"),
]


@pytest.mark.parametrize(("status", "at_once"), FURTHER)
async def test_mere_progress_waits_where_many_write(status: Any, at_once: bool) -> None:
    cluster, free = FakeCluster(), asyncio.Event()
    pod, writing, others = await among_many(cluster, free)
    pod.status(status)
    await turns()
    assert (cluster.patches == 2) == at_once
    free.set()
    pod.delete()
    await asyncio.gather(writing, *others)
    assert cluster.calls[1] == ("status", status)


async def test_news_takes_the_place_of_progress_that_waits_and_goes_at_once() -> None:
    cluster, free = FakeCluster(), asyncio.Event()
    pod, writing, others = await among_many(cluster, free)
    pod.status(told("9 of 9 GB"))
    await turns()
    pod.status(told("engine warm-up", "WarmUp"))
    await turns()
    assert cluster.calls[1:] == [("status", told("engine warm-up", "WarmUp"))]
    pod.close()
    free.set()
    await asyncio.gather(writing, *others)
