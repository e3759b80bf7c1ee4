"""Queue depths of engines from their ``/metrics``, once a real second each."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Self

import aiohttp

from modelserve import ports
from modelserve.adapters import gauges
from modelserve.api import wire
from modelserve.engines import types

log = logging.getLogger(__name__)

ANSWER_REAL_S = 0.9
CONCURRENCY = 128
BODY_LIMIT_BYTES = 4_000_000

Target = tuple[str, types.MetricNames]


class Scraper:
    """ports.MetricSource. ``async with`` it and ``run`` it as a task.

    A scrape that fails, or whose figures make no sense, yields no sample: the last one grows old,
    and whoever reads it judges its age.
    """

    def __init__(self, clock: ports.Clock, *, concurrency: int = CONCURRENCY) -> None:
        self._clock = clock
        self._limit = asyncio.Semaphore(concurrency)
        self._targets: dict[str, Target] = {}
        self._samples: dict[str, ports.EngineSample] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=ANSWER_REAL_S),
            auto_decompress=True,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def set_targets(self, targets: Mapping[str, Target]) -> None:
        """Scrape these from now on: metrics URL and names by pod UID. Others are forgotten."""
        self._targets = dict(targets)
        self._samples = {uid: s for uid, s in self._samples.items() if uid in self._targets}

    def sample(self, pod_uid: str) -> ports.EngineSample | None:
        """The newest sample of this pod, whatever its age."""
        return self._samples.get(pod_uid)

    async def run(self) -> None:
        """Scrape all targets every second until cancelled."""
        while True:
            began_real_s = self._clock.real_s()
            await self.scrape_all()
            spent_real_s = self._clock.real_s() - began_real_s
            await self._clock.sleep_real(wire.SCRAPE_PERIOD_REAL_S - spent_real_s)

    async def scrape_all(self) -> None:
        """One round."""
        async with asyncio.TaskGroup() as group:
            for uid, (url, metrics) in self._targets.items():
                group.create_task(self._scrape(uid, url, metrics))

    async def _scrape(self, uid: str, url: str, metrics: types.MetricNames) -> None:
        async with self._limit:
            text = await self._read(url)
        queue = None if text is None else gauges.parse_queue(text, metrics)
        if queue is None or uid not in self._targets:
            return
        waiting, running, kv_usage = queue
        self._samples[uid] = ports.EngineSample(self._clock.real_s(), waiting, running, kv_usage)

    async def _read(self, url: str) -> bytes | None:
        """The answer's body; None if there is none worth reading."""
        if self._session is None:
            raise RuntimeError("enter the scraper before it runs")
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, ValueError):
            # An engine has no business sending us elsewhere.
            async with self._session.get(url, allow_redirects=False) as response:
                if response.status == 200:
                    return await _read_up_to(response.content, BODY_LIMIT_BYTES)
        return None


async def _read_up_to(content: aiohttp.StreamReader, limit_bytes: int) -> bytes | None:
    parts, n_bytes = [], 0
    async for part in content.iter_any():
        parts.append(part)
        n_bytes += len(part)
        if n_bytes > limit_bytes:
            return None
    return b"".join(parts)
