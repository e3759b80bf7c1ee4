"""The demand stream of one gateway, and how long what it said counts."""

import asyncio
import json
import logging
import math
import random
from collections.abc import Callable

import aiohttp

from modelserve import ports
from modelserve.adapters import backoff
from modelserve.api import wire

log = logging.getLogger(__name__)

_PAUSE_FIRST_REAL_S = 0.05
_PAUSE_MOST_REAL_S = 2.0
# A Lease may outlive its gateway by days; nobody needs a knock at its door every two seconds.
_PAUSE_LAPSED_REAL_S = 30.0
# Snapshots come at least once a second.
_STREAM = aiohttp.ClientTimeout(total=None, sock_connect=1.0, sock_read=5.0)

OnSnapshot = Callable[[ports.GatewayView, ports.GatewayView | None], None]


class Refused(Exception):
    """The gateway answers, but not with figures; the message says what is to be done."""


class Link:
    """One gateway at one address. ``run`` ends when its Lease and its stream are gone."""

    def __init__(
        self,
        name: str,
        address: str,
        session: aiohttp.ClientSession,
        clock: ports.Clock,
        rng: random.Random,
        on_snapshot: OnSnapshot,
    ) -> None:
        self.name = name
        self.address = address
        self.epoch = ""
        self._session = session
        self._clock = clock
        self._pause = backoff.Backoff(rng, _PAUSE_FIRST_REAL_S, _PAUSE_MOST_REAL_S)
        self._on_snapshot = on_snapshot
        self._leased_real_s = -math.inf
        self._withdrawn = False
        self._streaming = False
        self._view: ports.GatewayView | None = None
        self._heard_real_s = clock.real_s()
        self._trouble = ""
        self._knock = asyncio.Event()

    def renew(self, epoch: str, now_real_s: float) -> None:
        """Its Lease was seen to change."""
        if epoch != self.epoch and not self._streaming:
            self._restarted(epoch)
        if now_real_s - self._leased_real_s > wire.LEASE_LAPSE_REAL_S:
            self._knock.set()
        self._leased_real_s = now_real_s
        self._withdrawn = False

    def withdraw(self) -> None:
        """Its Lease was deleted."""
        self._leased_real_s = -math.inf
        self._withdrawn = True
        self._knock.set()

    def is_live(self, now_real_s: float) -> bool:
        """Whether its Lease or its stream is fresh."""
        if now_real_s - self._leased_real_s <= wire.LEASE_LAPSE_REAL_S:
            return True
        return self._speaks(now_real_s) and (self._streaming or not self._withdrawn)

    def view(self, now_real_s: float) -> ports.GatewayView | None:
        """Its newest snapshot, if that is not too old to count at all."""
        return self._view if self._speaks(now_real_s) else None

    def is_silent(self, now_real_s: float) -> bool:
        """Whether what it holds now is not known."""
        return self._view is None or now_real_s - self._view.at_real_s > wire.SCRAPE_STALE_REAL_S

    def why_silent(self, now_real_s: float) -> str:
        """What keeps its figures from us, in words; empty if they come, or were late just now."""
        if not self.is_silent(now_real_s):
            return ""
        late = now_real_s - self._heard_real_s > wire.SCRAPE_STALE_REAL_S
        return self._trouble or (f"{self._name_and_place} tells no figures" if late else "")

    async def run(self) -> None:
        """Read the stream, again and again, until the Lease is withdrawn."""
        while True:
            try:
                await self._read()
            except Refused as error:
                level = logging.DEBUG if self._trouble == str(error) else logging.WARNING
                log.log(level, "%s", error)
                self._trouble = str(error)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                log.debug("no demand from gateway %s: %r", self.name, error)
            finally:
                self._streaming = False
            if self._withdrawn:
                return
            await self._rest()

    async def _read(self) -> None:
        async with self._session.get(
            f"http://{self.address}{wire.DEMAND_PATH}", timeout=_STREAM, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise Refused(self._name_and_place + _refusal(response.status))
            async for line in response.content:
                if line.strip():
                    self._take(_parse(line))

    def _take(self, snapshot: wire.DemandSnapshot) -> None:
        self._streaming = True
        self._trouble, self._heard_real_s = "", self._clock.real_s()
        self._pause.reset()
        if snapshot.epoch != self.epoch:
            self._restarted(snapshot.epoch)
        previous = self._view
        if previous is not None and snapshot.sequence < previous.snapshot.sequence:
            return
        self._view = ports.GatewayView(self._clock.real_s(), snapshot)
        self._on_snapshot(self._view, previous)

    def _restarted(self, epoch: str) -> None:
        # Counters of another epoch begin at zero: nothing of before may be compared with them.
        self.epoch = epoch
        self._view = None

    @property
    def _name_and_place(self) -> str:
        return f"gateway {self.name} at {self.address}"

    def _speaks(self, now_real_s: float) -> bool:
        return (
            self._view is not None and now_real_s - self._view.at_real_s <= wire.LEASE_LAPSE_REAL_S
        )

    async def _rest(self) -> None:
        lapsed = not self.is_live(self._clock.real_s())
        pause_real_s = _PAUSE_LAPSED_REAL_S if lapsed else self._pause.next_real_s()
        self._knock.clear()
        sleeping = asyncio.ensure_future(self._clock.sleep_real(pause_real_s))
        knocking = asyncio.ensure_future(self._knock.wait())
        try:
            await asyncio.wait((sleeping, knocking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            knocking.cancel()
            await asyncio.gather(sleeping, knocking, return_exceptions=True)


def _refusal(status: int) -> str:
    if status in (401, 403):
        return (
            f" refuses the operator's token (HTTP {status}): give both the same --token-file (the "
            "chart's Secret modelserve-gateway-token), and restart whichever has an old one"
        )
    return f" answers HTTP {status} where its figures should be: is it another program?"


def _parse(line: bytes) -> wire.DemandSnapshot:
    try:
        return wire.DemandSnapshot.parse(json.loads(line))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a snapshot that cannot be read: {line[:200]!r}") from error
