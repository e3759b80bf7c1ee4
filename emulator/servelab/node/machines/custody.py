"""Which nodes this process plays: takes those that fall to it, and lets go of others.

Where several processes share the nodes, a node is taken only once no other holds its Lease, and let
go of before its Lease is.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from modelserve import errors, ports
from modelserve.adapters import backoff, cache
from servelab.node import services
from servelab.node.machines import heartbeat, sharding

log = logging.getLogger(__name__)

LOOK_REAL_S = 5.0
PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S = 1.0, 10.0
Beats = Callable[[ports.Object], heartbeat.Heartbeat]


class Member(heartbeat.Us, Protocol):
    """This process among others (see ``shards``)."""

    def keeps(self, key: str) -> bool: ...


class Player(Protocol):
    """Who plays nodes."""

    def adopt(
        self, node: ports.Object, beat: heartbeat.Heartbeat, pods: Sequence[ports.Object]
    ) -> None:
        """Play it from now on, with these pods and those that the watch has told."""
        ...

    async def leave(self, name: str) -> None:
        """Play it no more; the pods on it stay as they are, for another to go on with."""
        ...


class Custody:
    """Of all nodes that are known. ``look`` at each change of members."""

    def __init__(
        self,
        shared: services.Services,
        us: Member,
        nodes: cache.Store,
        player: Player,
        beats: Beats,
    ) -> None:
        self._cluster = shared.cluster
        self._clock = shared.clock
        self._rng = shared.rng
        self._us = us
        self._nodes = nodes
        self._player = player
        self._make_beat = beats
        self._beats: dict[str, heartbeat.Heartbeat] = {}
        self._moves: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, set[str]] = {}  # pods that were seen to end, by node being taken

    def ours(self, name: str) -> bool:
        """Whether we may write for that node and its pods now."""
        beat = self._beats.get(name)
        return beat is not None and beat.ours and self._us.holds()

    def falls_to_us(self, node: ports.Object) -> bool:
        return self._us.keeps(sharding.key_of_node(node))

    def seen(self, node: ports.Object) -> None:
        """A node that we do not play is there."""
        if not self._us.name:
            beat = self._beats[node["metadata"]["name"]] = self._make_beat(node)
            self._player.adopt(node, beat, ())
        elif self.falls_to_us(node):
            self._move(node["metadata"]["name"], self._take)

    def gone(self, name: str) -> None:
        """The node is there no more."""
        self._beats.pop(name, None)
        moving = self._moves.pop(name, None)
        if moving is not None:
            moving.cancel()

    def pod_ended(self, name: str, uid: str) -> None:
        """The watch told that a pod on that node is gone."""
        if name in self._ended:
            self._ended[name].add(uid)

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
            # One that was cancelled has a successor by now.
            if self._moves.get(name) is asyncio.current_task():
                del self._moves[name]

    async def _take(self, name: str) -> None:
        pause = backoff.Backoff(self._rng, PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S)
        while (node := self._nodes.get(None, name)) is not None and self.falls_to_us(node):
            beat = self._make_beat(node)
            if not await beat.take():
                continue
            try:
                pods = await self._pods_on(name)
            except errors.ClusterError as error:
                log.warning("pods of node %s: %s", name, error)
                await beat.release()
                wish_real_s = getattr(error, "retry_after_s", None) or 0.0
                await self._clock.sleep_real(max(pause.next_real_s(), wish_real_s))
                continue
            log.info("node %s is ours", name)
            self._beats[name] = beat
            self._player.adopt(self._nodes.get(None, name) or node, beat, pods)
            return

    async def _pods_on(self, name: str) -> Sequence[ports.Object]:
        """As the API server has them: the watch may lag behind what the one before us wrote last.

        It may be ahead as well, of the answer on its way: pods that it told of are not in there,
        and some that are have ended.
        """
        ended = self._ended[name] = set()
        try:
            found, _ = await self._cluster.list(ports.PODS, field_selector=f"spec.nodeName={name}")
        finally:
            if self._ended.get(name) is ended:
                del self._ended[name]
        return [pod for pod in found if pod["metadata"]["uid"] not in ended]

    async def _leave(self, name: str) -> None:
        await self._player.leave(name)
        beat = self._beats.pop(name, None)
        if beat is not None:
            await beat.release()


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a node could not change hands", exc_info=error)
