"""Lets a node's own faults come and go, each at its time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from modelserve import ports
from modelserve.api import conditions
from modelserve.api.faults import FaultType as Type
from servelab.node.faults import fault
from servelab.node.machines import announcing
from servelab.node.machines.machine import Machine
from servelab.node.pools import registration

NEVER = fault.NEVER


class Outages:
    """Of one node. ``run`` it as a task; ``heard`` when its faults are others.

    ``changed`` hears that what the node suffers is another; ``reclaim`` takes the node away after
    so many emulated seconds.
    """

    def __init__(
        self,
        node: Machine,
        unix_s: Callable[[], float],
        changed: Callable[[Machine], None],
        reclaim: Callable[[ports.Object, float], Awaitable[None]],
    ) -> None:
        self._node = node
        self._unix_s = unix_s
        self._changed = changed
        self._reclaim = reclaim
        self._wake = asyncio.Event()
        self._seen_s = unix_s()

    def heard(self) -> None:
        """Look again."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        before = self._node.trouble.ailment(self._unix_s())
        while True:
            self._wake.clear()
            now = self._unix_s()
            await self._take_away(now)
            self._seen_s = now
            found = self._node.trouble.ailment(now)
            if found != before:
                if before.cut_off and not found.cut_off:
                    self._tell_return()
                before = found
                self._changed(self._node)
            await self._until(self._node.trouble.own.next_change_s(now))

    def _tell_return(self) -> None:
        """A kubelet that finds its node thought dead says that all is well again."""
        if not conditions.is_true(self._node.object, "Ready"):
            for reason in registration.WELL:
                announcing.tell(self._node, reason)

    async def _take_away(self, now: float) -> None:
        """The cloud takes its machine back, after a notice."""
        found = self._node.trouble.own.begun(Type.SPOT_RECLAIM, self._seen_s, now)
        if found is None:
            return
        text = f"spot interruption notice: the instance goes in {found.notice_s:g} s"
        subject = {"apiVersion": "v1", "kind": "Node", **self._node.object}
        self._node.sink.emit(subject, "Warning", "SpotInterruption", text)
        await self._reclaim(self._node.object, found.notice_s)

    async def _until(self, at_s: float) -> None:
        if at_s == NEVER:
            await self._wake.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, at_s - self._unix_s())):
                await self._wake.wait()
