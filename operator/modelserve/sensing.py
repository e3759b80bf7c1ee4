"""Notices what changes outside the API server: gateways' snapshots, engines' queue depths."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from modelserve import ports
from modelserve.adapters import scrape
from modelserve.api import names, wire
from modelserve.engines import commandline, profiles, types
from modelserve.reconciling import sightings
from modelserve.reconciling.world import Key, World

# Changes of figures may wait a little for each other; a wake may not.
GATHER_REAL_S = 0.1
LOOK_REAL_S = 1.0

Mark = Callable[[Key], None]


@dataclass(frozen=True, slots=True)
class Change:
    """A model whose figures changed, and how long looking at it may wait."""

    key: Key
    delay_real_s: float


def changes(now: wire.DemandSnapshot, before: wire.DemandSnapshot | None) -> Iterator[Change]:
    """What a gateway's new snapshot says that the one before did not."""
    earlier = {(m.namespace, m.name): m for m in before.models} if before else {}
    for model in now.models:
        known = earlier.pop((model.namespace, model.name), None)
        if known == model:
            continue
        urgent = known is None or (
            bool(model.held) != bool(known.held) or model.admitted != known.admitted
        )
        yield Change(Key(model.namespace, model.name), 0.0 if urgent else GATHER_REAL_S)
    for namespace, name in earlier:
        yield Change(Key(namespace, name), 0.0)


class Sensing:
    """Points the scraper at engines that serve, and marks ModelServes whose figures changed."""

    def __init__(
        self, world: World, scraper: scrape.Scraper, clock: ports.Clock, mark: Mark
    ) -> None:
        self._world = world
        self._scraper = scraper
        self._clock = clock
        self._mark = mark
        self._figures: dict[str, tuple[float, float] | None] = {}

    def aim(self) -> None:
        """Scrape every engine that may serve, and no other."""
        self._scraper.set_targets(
            {
                uid: found
                for pods in self._world.pods.values()
                for uid, pod in pods.items()
                if (found := target(self._world, pod)) is not None
            }
        )

    async def run(self) -> None:
        """Compare the samples once a second, until cancelled."""
        while True:
            await self._clock.sleep_real(LOOK_REAL_S)
            self.look()

    def look(self) -> None:
        """Mark each ModelServe of which an engine's figures changed, or went stale."""
        now_real_s = self._clock.real_s()
        figures: dict[str, tuple[float, float] | None] = {}
        for key, pods in self._world.pods.items():
            for uid in pods:
                sample = self._scraper.sample(uid)
                stale = sample is None or (now_real_s - sample.at_real_s > wire.SCRAPE_STALE_REAL_S)
                figures[uid] = None if sample is None or stale else (sample.waiting, sample.running)
                if figures[uid] != self._figures.get(uid):
                    self._mark(key)
        self._figures = figures


def target(world: World, pod: ports.Object) -> scrape.Target | None:
    """Where a pod's engine tells its figures; None while it cannot."""
    status = pod.get("status", {})
    running = any("running" in s.get("state", {}) for s in status.get("containerStatuses") or ())
    if not running or pod["metadata"].get("deletionTimestamp") or sightings.is_broken(pod):
        return None
    host = _host(world, pod)
    profile = _profile(pod)
    if host is None or profile is None:
        return None
    return f"http://{host}{profile.metrics_path}", profile.metrics


def _host(world: World, pod: ports.Object) -> str | None:
    """``host:port``. A dial address counts on virtual nodes only: anybody could set it."""
    node = world.nodes.get(pod["spec"].get("nodeName") or "", {"metadata": {}})
    virtual = (node["metadata"].get("labels") or {}).get(names.LABEL_VIRTUAL) == "true"
    dial = (pod["metadata"].get("annotations") or {}).get(names.DIAL)
    if virtual:
        return dial
    address = pod.get("status", {}).get("podIP")
    if not address:
        return None
    return (
        f"[{address}]:{names.ENGINE_PORT}" if ":" in address else f"{address}:{names.ENGINE_PORT}"
    )


def _profile(pod: ports.Object) -> types.Profile | None:
    for container in pod["spec"].get("containers", ()):
        if container.get("name") == names.ENGINE_CONTAINER:
            seen = commandline.read(container)
            for module in profiles.MODULES:
                if module.recognise(seen) is not None:
                    return module.PROFILE
    return None
