"""Notices what changes outside the API server: gateways' snapshots, engines' queue depths."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from modelserve import errors, ports
from modelserve.adapters import scrape
from modelserve.api import names, pods, wire
from modelserve.api.keys import Key
from modelserve.engines import commandline, profiles, types
from modelserve.reconciling import sightings
from modelserve.reconciling.world import World

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


@dataclass(frozen=True, slots=True)
class _Found:
    """What a pod on its node was found to say of its engine."""

    pod: ports.Object
    node: ports.Object | None
    target: scrape.Target | None


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
        self._found: dict[str, _Found] = {}

    def aim(self) -> None:
        """Scrape every engine that may serve, and no other."""
        before, self._found = self._found, {}
        for pods_of_model in self._world.pods.values():
            for uid, pod in pods_of_model.items():
                node = self._world.nodes.get(pod["spec"].get("nodeName") or "")
                known = before.get(uid)
                # Objects are replaced when they change: only then is a command line read again.
                if known is None or known.pod is not pod or known.node is not node:
                    known = _Found(pod, node, target(pod, node))
                self._found[uid] = known
        found = self._found.items()
        self._scraper.set_targets({uid: f.target for uid, f in found if f.target is not None})

    async def run(self) -> None:
        """Compare the samples once a second, until cancelled."""
        while True:
            await self._clock.sleep_real(LOOK_REAL_S)
            self.look()

    def look(self) -> None:
        """Mark each ModelServe of which an engine's figures changed, or went stale."""
        now_real_s = self._clock.real_s()
        figures: dict[str, tuple[float, float] | None] = {}
        for key, known in self._world.pods.items():
            for uid in known:
                sample = self._scraper.sample(uid)
                stale = sample is None or (now_real_s - sample.at_real_s > wire.SCRAPE_STALE_REAL_S)
                figures[uid] = None if sample is None or stale else (sample.waiting, sample.running)
                if figures[uid] != self._figures.get(uid):
                    self._mark(key)
        self._figures = figures


def target(pod: ports.Object, node: ports.Object | None) -> scrape.Target | None:
    """Where a pod's engine tells its figures; None while it cannot."""
    status = pod.get("status", {})
    running = any("running" in s.get("state", {}) for s in status.get("containerStatuses") or ())
    if not running or pod["metadata"].get("deletionTimestamp") or sightings.is_broken(pod):
        return None
    profile = _profile(pod)
    if profile is None:
        return None
    labels = (node or {"metadata": {}})["metadata"].get("labels") or {}
    virtual = labels.get(names.LABEL_VIRTUAL) == "true"
    address = pods.dial_address(pod, virtual=virtual, port=profile.metrics_port)
    return (f"http://{address}{profile.metrics_path}", profile.metrics) if address else None


def _profile(pod: ports.Object) -> types.Profile | None:
    seen = commandline.read(pods.engine_container(pod))
    recognised = (m for m in profiles.MODULES if m.recognise(seen) is not None)
    try:
        return next((module.PROFILE for module in recognised), None)
    except errors.InputError:
        return None  # The engine refuses its arguments and ends: there is nothing to read.
