"""Which nodes this process plays: takes those that fall to it, and lets go of others.

Where several processes share the nodes, a node is taken only once no other holds its Lease, and let
go of before its Lease is.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from modelserve import errors, ports
from modelserve.adapters import cache
from servelab.node.machines import heartbeat, sharding

log = logging.getLogger(__name__)

LOOK_REAL_S = 5.0
Beats = Callable[[ports.Object], heartbeat.Heartbeat]


class Member(heartbeat.Us, Protocol):
    """This process among others (see ``shards``)."""

    def keeps(self, key: str) -> bool: ...


class Player(Protocol):
    """Who plays nodes."""

    def adopt(
        self, node: ports.Object, beat: heartbeat.Heartbeat, pods: Sequence[ports.Object] | None
    ) -> None:
        """Play it from now on, with these pods; None: with those that the watch has told."""
        ...

    async def leave(self, name: str) -> None:
        """Play it no more; the pods on it stay as they are, for another to go on with."""
        ...


class Custody:
    """Of all nodes that are known. ``look`` at each change of members."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        us: Member,
        nodes: cache.Store,
        player: Player,
        beats: Beats,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._us = us
        self._nodes = nodes
        self._player = player
        self._make_beat = beats
        self._beats: dict[str, heartbeat.Heartbeat] = {}
        self._moves: dict[str, asyncio.Task[None]] = {}

    def ours(self, name: str) -> bool:
        """Whether we may write for that node and its pods now."""
        beat = self._beats.get(name)
        return beat is not None and beat.ours

    def falls_to_us(self, node: ports.Object) -> bool:
        return self._us.keeps(sharding.key_of_node(node))

    def seen(self, node: ports.Object) -> None:
        """A node that we do not play is there."""
        if not self._us.identity:
            beat = self._beats[node["metadata"]["name"]] = self._make_beat(node)
            self._player.adopt(node, beat, None)
        elif self.falls_to_us(node):
            self._move(node["metadata"]["name"], self._take)

    def gone(self, name: str) -> None:
        """The node is there no more."""
        self._beats.pop(name, None)
        moving = self._moves.pop(name, None)
        if moving is not None:
            moving.cancel()

    def lost(self, name: str) -> None:
        """Another process plays it."""
        log.warning("node %s is played by another emulator", name)
        self._move(name, self._leave)

    def look(self) -> None:
        """The members are others: let go of what falls to another, take what falls to us."""
        for node in self._nodes.items():
            name = node["metadata"]["name"]
            if name not in self._beats:
                self.seen(node)
            elif self._us.holds() and not self.falls_to_us(node):
                self._move(name, self._leave)

    async def keep(self) -> None:
        """Look from time to time as well: what was tried may have failed. For ever."""
        while True:
            await self._clock.sleep_real(LOOK_REAL_S)
            self.look()

    async def close(self) -> None:
        """End what is under way."""
        tasks = list(self._moves.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _move(self, name: str, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """One move at a time of a node; what follows from a new look comes with the next."""
        if name not in self._moves:
            task = self._moves[name] = asyncio.create_task(self._moved(name, work))
            task.add_done_callback(_tell)

    async def _moved(self, name: str, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        try:
            await work(name)
        finally:
            self._moves.pop(name, None)

    async def _take(self, name: str) -> None:
        while (node := self._nodes.get(None, name)) is not None and self.falls_to_us(node):
            beat = self._make_beat(node)
            if not await beat.take():
                continue
            # The watch may lag behind what the one before us wrote last.
            try:
                found, _ = await self._cluster.list(
                    ports.PODS, field_selector=f"spec.nodeName={name}"
                )
            except errors.ClusterError as error:
                log.warning("pods of node %s: %s", name, error)
                await beat.release()
                continue
            log.info("node %s is ours", name)
            self._beats[name] = beat
            self._player.adopt(node, beat, found)
            return

    async def _leave(self, name: str) -> None:
        await self._player.leave(name)
        beat = self._beats.pop(name, None)
        if beat is not None:
            await beat.release()


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a node could not change hands", exc_info=error)
