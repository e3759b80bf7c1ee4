"""Writes of one pod to the API, in order, newest status only, tried again until they succeed."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from modelserve import errors, ports
from modelserve.adapters import backoff
from modelserve.api import names
from servelab.node.pods import writes

log = logging.getLogger(__name__)

FIRST_PAUSE_REAL_S = 0.1
LONGEST_PAUSE_REAL_S = 5.0
HELD_LOOK_REAL_S = 0.25
_CONDITIONS = "conditions"


class PodWriter:
    """``run`` it as a task. Annotations and status go together, the deletion goes last.

    Mere progress of a start goes when the API server has little else to take in.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        pod: ports.Object,
        room: writes.Statuses,
        sleep_real: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._sleep = sleep_real
        meta = pod["metadata"]
        self._namespace, self._name, self._uid = meta["namespace"], meta["name"], meta["uid"]
        self._cluster = cluster
        self._room = room
        self._annotations: dict[str, str] = {}
        self._status: Mapping[str, Any] | None = None
        self._sent: Mapping[str, Any] | None = None
        self._delete = False
        self._closed = False
        self._work = asyncio.Event()
        self._hurry = asyncio.Event()
        self._backoff = backoff.Backoff(
            rng or random.Random(), FIRST_PAUSE_REAL_S, LONGEST_PAUSE_REAL_S
        )
        self._failing = False
        self.sending = False  # a write is on its way, or being answered
        self.version = ""

    @property
    def idle(self) -> bool:
        """Whether everything asked for is written."""
        return not self._work.is_set()

    @property
    def sent(self) -> Mapping[str, Any] | None:
        """The status as last written by us."""
        return self._sent

    def status(self, body: Mapping[str, Any]) -> None:
        """Write this status; one that still waits is replaced."""
        if self._status is not None or body != self._sent:
            self._status = body
            self._asked()

    def annotate(self, annotations: Mapping[str, str]) -> None:
        # A new dictionary: a write under way holds the one before.
        self._annotations = {**self._annotations, **annotations}
        self._asked()

    def again(self) -> None:
        """Write the last status once more: somebody else overwrote it."""
        if self._sent is not None and self._status is None:
            self._status = self._sent
            self._asked()

    def delete(self) -> None:
        """Remove the pod when all is written."""
        self._delete = True
        self._asked()

    def close(self) -> None:
        """Begin no write any more."""
        self._closed = True
        self._asked()

    def _asked(self) -> None:
        self._work.set()
        if not self._can_wait():
            self._hurry.set()

    def _can_wait(self) -> bool:
        """Whether all that is asked for is to tell how far a phase is."""
        if self._annotations or self._delete or self._closed:
            return False
        return self._status is not None and _tells_progress(self._status, self._sent)

    async def run(self, held: Callable[[], bool] = lambda: False) -> None:
        """Write until the pod is gone, or ``close``; nothing while ``held``."""
        while True:
            await self._work.wait()
            if self._closed:
                return
            if held():
                await self._sleep(HELD_LOOK_REAL_S)
                continue
            try:
                if self._can_wait():
                    self._hurry.clear()
                    await self._room.lull(self._hurry)
                async with self._room:
                    if self._closed or await self._send():
                        return
            except errors.NotFound:
                return
            except errors.ClusterError as error:
                await self._failed(error)
                continue
            self._failing = False
            self._backoff.reset()
            if not (self._annotations or self._status is not None or self._delete):
                self._work.clear()

    async def _failed(self, error: errors.ClusterError) -> None:
        """Wait before another try; what the server refuses for good is not tried again."""
        where = f"{self._namespace}/{self._name}"
        if isinstance(error, errors.Invalid):
            log.error("cannot write pod %s: %s", where, error)
            self._annotations, self._status = {}, None
        else:
            refused = isinstance(error, errors.Forbidden) and not self._failing
            level = logging.WARNING if refused else logging.DEBUG
            log.log(level, "writing pod %s again: %s", where, error)
        self._failing = True
        wish_real_s = getattr(error, "retry_after_s", None) or 0.0
        await self._sleep(max(self._backoff.next_real_s(), wish_real_s))

    async def _send(self) -> bool:
        self.sending = True
        try:
            return await self._write()
        finally:
            self.sending = False

    async def _write(self) -> bool:
        """Annotations and status, in one write; returns whether the pod is removed."""
        if self._annotations or self._status is not None:
            annotations, status = self._annotations, self._status
            answer = await self._cluster.patch(
                ports.PODS,
                self._namespace,
                self._name,
                self._body(annotations, status),
                content_type=ports.STRATEGIC_PATCH,
                subresource="status",
            )
            self.version = answer["metadata"].get("resourceVersion", "")
            self._wrote(annotations, status)
        if self._delete and not (self._closed or self._annotations or self._status is not None):
            await self._remove()
            return True
        return False

    def _body(
        self, annotations: Mapping[str, str], status: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """``/status`` of a pod takes annotations as well: nobody sees one without the other."""
        metadata: dict[str, Any] = {"uid": self._uid}
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {"metadata": metadata} | ({} if status is None else {"status": dict(status)})

    def _wrote(self, annotations: Mapping[str, str], status: Mapping[str, Any] | None) -> None:
        """What was asked for meanwhile is still to be written."""
        left = self._annotations.items() - annotations.items()
        self._annotations = dict(left)
        if status is not None:
            self._sent = status
            if self._status is status:
                self._status = None

    async def _remove(self) -> None:
        try:
            await self._cluster.delete(
                ports.PODS, self._namespace, self._name, grace_s=0, uid=self._uid
            )
        except errors.Conflict:
            found = await self._cluster.get(ports.PODS, self._namespace, self._name)
            if found["metadata"]["uid"] == self._uid:
                raise
            log.debug("pod %s/%s is another one by now", self._namespace, self._name)


def _tells_progress(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> bool:
    """Whether nothing is new but the words of our own condition, and nothing of a kubelet's."""
    if old is None or new.keys() != old.keys():
        return False
    if any(value != old[key] for key, value in new.items() if key != _CONDITIONS):
        return False
    return _without_words(new) == _without_words(old)


def _without_words(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        {**each, "message": ""} if each.get("type") == names.CONDITION_STARTING else each
        for each in status.get(_CONDITIONS) or ()
    ]
