"""Probing engines that start while requests wait for them.

A kubelet probes once a second at most and its verdict travels through the API server; here a held
request is sent some milliseconds after the engine's first 200.
"""

import asyncio
import logging

import aiohttp

from modelserve.api import wire
from modelserve.api.keys import Key
from modelserve.decide import fleet
from modelserve.gateway import dispatch

log = logging.getLogger(__name__)

# Long enough for far-away clusters; a probe that hangs delays only its own pod's next one.
TIMEOUT_REAL_S = 2.0


class Prober:
    """One task per pod that is to be probed."""

    def __init__(self, dispatcher: dispatch.Dispatcher, session: aiohttp.ClientSession) -> None:
        self._dispatcher = dispatcher
        self._session = session
        self._tasks: dict[Key, dict[str, asyncio.Task[None]]] = {}
        dispatcher.listen(self.note)

    def note(self, key: Key) -> None:
        """Start and stop probes as the model's machine wants."""
        targets = self._dispatcher.machine(key).probe_targets()
        tasks = self._tasks.get(key)
        if not targets and not tasks:
            return
        tasks = self._tasks.setdefault(key, {})
        for uid in tasks.keys() - targets:
            tasks.pop(uid).cancel()
        for uid in targets - tasks.keys():
            tasks[uid] = asyncio.create_task(self._probe(key, uid), name=f"probe {key} {uid}")
        if not tasks:
            del self._tasks[key]

    @property
    def probing(self) -> int:
        """Pods being probed now."""
        return sum(len(tasks) for tasks in self._tasks.values())

    async def close(self) -> None:
        """Stop all probes."""
        tasks = [task for tasks in self._tasks.values() for task in tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe(self, key: Key, uid: str) -> None:
        clock = self._dispatcher.clock
        while True:
            began_real_s = clock.real_s()
            replica = self._dispatcher.machine(key).replica(uid)
            if replica is not None and await self._is_up(replica):
                log.info("probe: %s of %s is up", replica.name, key)
                # This ends in our own cancellation, through ``note``.
                self._dispatcher.admit(key, uid)
            spent_real_s = clock.real_s() - began_real_s
            await clock.sleep_real(max(0.0, wire.PROBE_PERIOD_REAL_S - spent_real_s))

    async def _is_up(self, replica: fleet.Replica) -> bool:
        url = f"http://{replica.address}{replica.health_path}"
        limits = aiohttp.ClientTimeout(total=TIMEOUT_REAL_S)
        try:
            async with self._session.get(url, timeout=limits, allow_redirects=False) as response:
                await response.read()
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return False
