"""Kubernetes Events (core/v1), aggregated and rationed; never fails and never delays its caller."""

import asyncio
import collections
import contextlib
import hashlib
import itertools
import logging
from dataclasses import dataclass
from typing import Any

from modelserve import errors, ports
from modelserve.api import timestamps

log = logging.getLogger(__name__)

QUEUE_LIMIT = 1000
# Kubernetes' own recorders: the same message within ten minutes counts up the event it had.
AGGREGATE_REAL_S = 600.0
PER_MINUTE = 25
MINUTE_REAL_S = 60.0
FORGOTTEN_AT_ONCE = 4
KNOWN_LIMIT = 4096
MESSAGE_LIMIT = 1024
ATTEMPTS = 4
FLUSH_REAL_S = 1.0


@dataclass(frozen=True, slots=True)
class _Event:
    """What one call of ``emit`` said."""

    subject: ports.Object
    kind: str
    reason: str
    message: str
    field_path: str
    at_wall_s: float

    @property
    def key(self) -> bytes:
        """Thousands are kept: a digest takes a tenth of the room of what it stands for."""
        told = (*_identity(self.subject), self.kind, self.reason, self.message, self.field_path)
        return hashlib.blake2b("\0".join(told).encode(), digest_size=16).digest()


@dataclass(slots=True)
class _Written:
    """An Event that exists at the server."""

    name: str
    count: int
    at_real_s: float


class EventSink:
    """ports.EventSink. ``run`` it as a task; cancelled, it writes what is left for up to 1 s.

    ``component`` and ``host`` are the source shown by kubectl (``kubelet``, node name); the same
    subject gets at most ``per_minute`` events a real minute, what is beyond is dropped.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        component: str,
        clock: ports.Clock,
        *,
        host: str = "",
        instance: str = "",
        per_minute: int = PER_MINUTE,
        limit: contextlib.AbstractAsyncContextManager[None] | None = None,
    ) -> None:
        """``limit``: of writes at once, for sinks that share it; each alone writes one by one."""
        self._limit: contextlib.AbstractAsyncContextManager[None] = limit or asyncio.Semaphore(1)
        self.dropped = 0
        self._cluster = cluster
        self._component = component
        self._clock = clock
        self._host = host
        self._instance = instance or host or component
        self._per_minute = per_minute
        self._queue: asyncio.Queue[_Event] = asyncio.Queue(QUEUE_LIMIT)
        self._written: collections.OrderedDict[bytes, _Written] = collections.OrderedDict()
        # Of each subject the times of its events of the last minute, the latest subject last.
        self._recent: collections.OrderedDict[tuple[str, ...], list[float]] = (
            collections.OrderedDict()
        )
        self._sequence = 0
        self._writing = 0

    @property
    def waiting(self) -> int:
        """Events that are not written yet."""
        return self._queue.qsize() + self._writing

    @property
    def remembered(self) -> int:
        """Subjects and events that are kept in mind, for rationing and for counting up."""
        return len(self._recent) + len(self._written)

    def emit(
        self,
        subject: ports.Object,
        kind: str,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        at_wall_s: float | None = None,
    ) -> None:
        """Queue an event about an object (its apiVersion, kind and metadata are enough).

        ``field_path`` names a part of it: ``spec.containers{engine}``; ``at_wall_s`` is when it
        happened, if not now.
        """
        at_wall_s = self._clock.wall_s() if at_wall_s is None else at_wall_s
        event = _Event(subject, kind, reason, message[:MESSAGE_LIMIT], field_path, at_wall_s)
        try:
            if not self._allowed(_identity(subject)):
                raise asyncio.QueueFull
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1
        except (KeyError, TypeError):
            log.exception("an event about something that is no object is lost")
            self.dropped += 1

    async def run(self) -> None:
        """Write events until cancelled."""
        try:
            while True:
                await self._write(await self._queue.get())
        except asyncio.CancelledError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_REAL_S):
                    await self.flush()
            raise

    async def flush(self) -> None:
        """Write everything that is queued."""
        while not self._queue.empty():
            await self._write(self._queue.get_nowait())

    def _allowed(self, subject: tuple[str, ...]) -> bool:
        now = self._clock.real_s()
        times = self._recent.pop(subject, [])
        times = self._recent[subject] = [at_s for at_s in times if now - at_s < MINUTE_REAL_S]
        allowed = len(times) < self._per_minute
        if allowed:
            times.append(now)
        self._forget(now)
        return allowed

    def _forget(self, now: float) -> None:
        """Drop who said nothing for a minute, and what is too old to be counted up."""
        for times in list(itertools.islice(self._recent.values(), FORGOTTEN_AT_ONCE)):
            if times and now - times[-1] < MINUTE_REAL_S:
                break
            self._recent.popitem(last=False)
        for written in list(itertools.islice(self._written.values(), FORGOTTEN_AT_ONCE)):
            if now - written.at_real_s < AGGREGATE_REAL_S:
                break
            self._written.popitem(last=False)

    async def _write(self, event: _Event) -> None:
        self._writing += 1
        try:
            await self._deliver(event)
        finally:
            self._writing -= 1

    async def _deliver(self, event: _Event) -> None:
        pause_real_s = 0.5
        for _ in range(ATTEMPTS):
            try:
                async with self._limit:
                    await self._post(event)
                return
            except errors.Unavailable as error:
                log.debug("an event waits: %s", error)
                await self._clock.sleep_real(max(pause_real_s, error.retry_after_s or 0.0))
                pause_real_s *= 2
            except errors.ClusterError as error:
                # Its namespace is going, or we may not: an event is worth no more than this.
                log.debug("an event is lost: %s", error)
                break
            except Exception:
                log.exception("an event is lost")
                break
        self.dropped += 1

    async def _post(self, event: _Event) -> None:
        now = self._clock.real_s()
        written = self._written.pop(event.key, None)
        if written is not None and now - written.at_real_s < AGGREGATE_REAL_S:
            count = written.count + 1
            body = {"count": count, "lastTimestamp": timestamps.format_time(event.at_wall_s)}
            with contextlib.suppress(errors.NotFound):
                await self._cluster.patch(
                    ports.EVENTS, _namespace(event.subject), written.name, body
                )
                self._remember(event, _Written(written.name, count, now))
                return
        name = self._name(event)
        await self._cluster.create(
            ports.EVENTS, _namespace(event.subject), self._render(event, name)
        )
        self._remember(event, _Written(name, 1, now))

    def _remember(self, event: _Event, written: _Written) -> None:
        self._written[event.key] = written
        if len(self._written) > KNOWN_LIMIT:
            self._written.popitem(last=False)

    def _name(self, event: _Event) -> str:
        # As client-go: the subject's name and the time; the sequence keeps a burst apart.
        self._sequence += 1
        stamp = int(event.at_wall_s * 1e9) + self._sequence
        return f"{event.subject['metadata']['name'][:200]}.{stamp:x}"

    def _render(self, event: _Event, name: str) -> dict[str, Any]:
        subject = event.subject
        metadata = subject["metadata"]
        involved = {
            "apiVersion": subject.get("apiVersion", ""),
            "kind": subject.get("kind", ""),
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "resourceVersion": metadata.get("resourceVersion", ""),
            "fieldPath": event.field_path,
        }
        source = {"component": self._component, "host": self._host}
        stamp = timestamps.format_time(event.at_wall_s)
        return {
            "metadata": {"name": name, "namespace": _namespace(subject)},
            "involvedObject": {k: v for k, v in involved.items() if v},
            "type": event.kind,
            "reason": event.reason,
            "message": event.message,
            "source": {k: v for k, v in source.items() if v},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }


def _identity(subject: ports.Object) -> tuple[str, ...]:
    metadata = subject["metadata"]
    return (
        str(subject.get("kind", "")),
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
        str(metadata.get("uid", "")),
    )


def _namespace(subject: ports.Object) -> str:
    # Events of cluster-scoped objects live in "default".
    return str(subject["metadata"].get("namespace") or "default")
