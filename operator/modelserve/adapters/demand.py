"""What all gateways hold, by one stream each; and the questions put to all of them at once.

A gateway is live while its Lease *or* its stream is fresh, each for 10 real seconds by our own
monotonic clock: an outage of the API server alone drops nobody, nor does a broken stream alone. A
Lease deleted by its owner counts no more. Figures older than that are dropped even of a live one,
which then is silent, but still has to grant fences.
"""

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import aiohttp

from modelserve import ports
from modelserve.adapters import cache, links
from modelserve.api import names, wire

log = logging.getLogger(__name__)

# (newest view, the one before of the same gateway and epoch, or None)
OnSnapshot = Callable[[ports.GatewayView, ports.GatewayView | None], None]
# (names of the live gateways that have spoken within 10 s; or sentences, one a silent one)
OnTurnout = Callable[[frozenset[str]], None]

_SWEEP_REAL_S = 1.0
# What a gateway that has answered nothing yet was told: epoch and share.
_UNTOLD = ("", 0)
_ANSWER = aiohttp.ClientTimeout(total=wire.FENCE_ANSWER_REAL_S)


class Gateways:
    """ports.DemandSource. ``async with`` it and ``run`` it as a task.

    ``on_snapshot`` is called for each snapshot as it comes, ``on_turnout`` when the set of gateways
    whose figures count has changed, ``on_troubles`` when what keeps others' from us has; all in the
    event loop.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        namespace: str,
        token: str,
        clock: ports.Clock,
        *,
        on_snapshot: OnSnapshot | None = None,
        on_turnout: OnTurnout | None = None,
        on_troubles: OnTurnout | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.leases = cache.Store(
            cluster, ports.LEASES, namespace, label_selector=f"{names.LABEL_GATEWAY}=true"
        )
        self._token = token
        self._clock = clock
        self._on_snapshot = on_snapshot
        self._on_turnout = on_turnout
        self._on_troubles = on_troubles
        self._turnout: frozenset[str] = frozenset()
        self._troubles: frozenset[str] = frozenset()
        self._rng = rng or random.Random()
        self._links: dict[str, links.Link] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._live: set[str] = set()
        self._shares: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._group: asyncio.TaskGroup | None = None
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"Authorization": f"Bearer {self._token}"},
            read_bufsize=2**20,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def run(self) -> None:
        """Follow the Leases and hold the streams until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            self.leases.on_change(self._on_lease)
            self._group.create_task(self.leases.run(), name="gateway-leases")
            while True:
                self.sweep()
                await self._clock.sleep_real(_SWEEP_REAL_S)

    def gateways(self) -> Sequence[ports.GatewayView]:
        """The newest view of each live gateway that has spoken within 10 s, by name."""
        now = self._clock.real_s()
        views = [link.view(now) for link in self._live_links()]
        return sorted(filter(None, views), key=lambda view: view.snapshot.gateway)

    def silent(self) -> Sequence[str]:
        """Live gateways whose figures are missing or older than 3 s: nothing may shrink then."""
        now = self._clock.real_s()
        return sorted(link.name for link in self._live_links() if link.is_silent(now))

    def troubles(self) -> Sequence[str]:
        """Of each live gateway that is silent, and not just for a moment, why: a sentence."""
        now = self._clock.real_s()
        return sorted(filter(None, (link.why_silent(now) for link in self._live_links())))

    async def introduced(self, most_real_s: float = 2.0) -> None:
        """Wait, after a start, until every live gateway has spoken once; at most so long.

        Counters of a gateway first seen later than the others would look like a burst.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_real_s):
                await self.leases.synced.wait()
                while self.silent():
                    await self._news.wait()

    async def fence(self, request: wire.FenceRequest) -> bool:
        """Ask all live gateways at once, at most 1 s; True only if every one granted.

        False without a live gateway, too: then nobody could say that nothing is held. What was, or
        may have been, granted is taken back if not all did.
        """
        asked = self._live_links()
        if not asked or not self.leases.synced.is_set():
            return False
        body = request.to_json()
        answers = await asyncio.gather(*(self._post(k, wire.FENCE_PATH, body) for k in asked))
        if all(_granted(answer) for answer in answers):
            return True
        await self._unfence(asked, request.namespace, request.name, request.fence_id)
        return False

    async def unfence(self, namespace: str, name: str, fence_id: str) -> None:
        """Lift a fence everywhere; it would lapse by itself 3 s after it was granted."""
        await self._unfence(self._live_links(), namespace, name, fence_id)

    async def share(self, namespace: str, name: str, shares: Mapping[str, int]) -> None:
        """Tell gateways (by name) the most requests each may have in flight at a replica.

        What a gateway was told since its start is not repeated; one that does not answer is told
        again at the next call.
        """
        links_ = {k: self._links[k] for k in shares if k in self._links}
        due = {
            gateway: link
            for gateway, link in links_.items()
            if self._shares.get((gateway, namespace, name)) != (link.epoch, shares[gateway])
        }
        for gateway in due:
            self._shares.setdefault((gateway, namespace, name), _UNTOLD)
        await asyncio.gather(
            *(self._share(k, link, namespace, name, shares[k]) for k, link in due.items())
        )

    def forget(self, namespace: str, name: str) -> None:
        """The model is gone: gateways forget its share, and one of its name is told of anew."""
        for gateway in self._links:
            self._shares.pop((gateway, namespace, name), None)

    @property
    def shares_told(self) -> int:
        """Shares that gateways were told, one of each model."""
        return len(self._shares)

    def sweep(self) -> None:
        """Report what changed by time alone since the last time; ``run`` does it every second."""
        now = self._clock.real_s()
        live = {name for name, link in self._links.items() if link.is_live(now)}
        leased = {lease["metadata"]["name"] for lease in self.leases.items()}
        for name in self._live - live:
            if name in leased:
                log.warning("gateway %s is live no more: no Lease renewal, no snapshot", name)
            else:
                log.info("gateway %s has taken its leave", name)
            self._forget_shares(name)
        self._live = live
        turnout = frozenset(view.snapshot.gateway for view in self.gateways())
        troubles = frozenset(self.troubles())
        if troubles != self._troubles:
            self._troubles = troubles
            if self._on_troubles is not None:
                self._on_troubles(troubles)
        if turnout != self._turnout:
            self._turnout = turnout
            if self._on_turnout is not None:
                self._on_turnout(turnout)

    def _on_lease(self, old: ports.Object | None, new: ports.Object | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        link = self._links.get(name)
        if new is None:
            if link is not None:
                link.withdraw()
            return
        address, epoch = _where(new)
        if not address:
            log.warning("gateway Lease %s has no address; it is left aside", name)
            return
        if link is not None and (link.address != address or self._tasks[name].done()):
            self._tasks[name].cancel()
            link = None
        if link is None:
            link = self._open(name, address)
        link.renew(epoch, self._clock.real_s())

    def _open(self, name: str, address: str) -> links.Link:
        if self._group is None or self._session is None:
            raise RuntimeError("enter the gateways before they run")
        link = links.Link(name, address, self._session, self._clock, self._rng, self._took)
        self._links[name] = link
        task = self._group.create_task(link.run(), name=f"demand of {name}")
        task.add_done_callback(lambda _: self._closed(name, link))
        self._tasks[name] = task
        return link

    def _closed(self, name: str, link: links.Link) -> None:
        # A link that was replaced, by one to another address, must not take its successor along.
        if self._links.get(name) is link:
            del self._links[name], self._tasks[name]

    def _took(self, view: ports.GatewayView, previous: ports.GatewayView | None) -> None:
        self._news.set()
        self._news = asyncio.Event()
        if self._on_snapshot is not None:
            self._on_snapshot(view, previous)

    def _live_links(self) -> list[links.Link]:
        now = self._clock.real_s()
        return [link for link in self._links.values() if link.is_live(now)]

    async def _unfence(
        self, asked: Sequence[links.Link], namespace: str, name: str, fence_id: str
    ) -> None:
        body = {"namespace": namespace, "name": name, "fenceId": fence_id}
        await asyncio.gather(*(self._post(link, wire.UNFENCE_PATH, body) for link in asked))

    async def _share(
        self, gateway: str, link: links.Link, namespace: str, name: str, n_in_flight: int
    ) -> None:
        epoch, told = link.epoch, (gateway, namespace, name)
        body = wire.Share(namespace, name, n_in_flight).to_json()
        answer = await self._post(link, wire.SHARE_PATH, body)
        # The model, or the gateway, may be gone by now.
        if answer is not None and told in self._shares:
            self._shares[told] = epoch, n_in_flight

    def _forget_shares(self, gateway: str) -> None:
        self._shares = {k: v for k, v in self._shares.items() if k[0] != gateway}

    async def _post(self, link: links.Link, path: str, body: Mapping[str, Any]) -> Any:
        """The answer's JSON; None if there was none, or it was no 200."""
        if self._session is None:
            return None
        try:
            async with self._session.post(
                f"http://{link.address}{path}", json=body, timeout=_ANSWER, allow_redirects=False
            ) as response:
                content = await response.read()
                if 200 <= response.status < 300:
                    return json.loads(content) if content else {}
                log.warning("gateway %s answers %d to %s", link.name, response.status, path)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            log.warning("gateway %s gives no answer to %s: %r", link.name, path, error)
        return None


def _granted(answer: Any) -> bool:
    try:
        return wire.FenceAnswer.parse(answer).granted
    except (KeyError, TypeError, ValueError):
        return False


def _where(lease: ports.Object) -> tuple[str, str]:
    annotations = lease["metadata"].get("annotations") or {}
    return annotations.get(names.GATEWAY_ADDRESS, ""), annotations.get(names.GATEWAY_EPOCH, "")
