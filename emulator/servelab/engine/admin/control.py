"""One engine under control: its law, its gauges and its surface, changed while it runs."""

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from modelserve.engines import types
from modelserve.ports import Clock
from servelab.engine.admin import documents, faults
from servelab.engine.admin.faults import Injected
from servelab.engine.admin.overriding import Overridden, Shown, SlowedLaw
from servelab.engine.admin.surfacing import FaultySurface
from servelab.engine.core.intake import QueueFull
from servelab.engine.core.laws import StepLaw
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces.surface import Surface


class Engine(Protocol):
    """What is controlled, once it is there."""

    def settle(self) -> None:
        """Bring the core and the exporter up to now."""

    def end_step(self, in_s: float) -> None:
        """Let the step under way end so many seconds from now."""

    def unix_s(self) -> float:
        """The time of day."""
        ...


class Control:
    """Made before its engine, and given to it. ``on_exit(code)`` ends the process."""

    def __init__(self, clock: Clock, on_exit: Callable[[int], None] = lambda code: None) -> None:
        self._clock = clock
        self._on_exit = on_exit
        self._shown: dict[str, Shown] = {}
        self._faults: dict[str, Injected] = {}
        self._rng: random.Random | None = None
        self._engine: Engine | None = None
        self._changed: Callable[[], None] = lambda: None  # tells who asked the law
        self._surface: FaultySurface | None = None
        self._load: Load | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    # What the engine takes from it.

    def load(self, inner: Load) -> Load:
        """The gauges as they are shown."""
        self._load = inner
        return Overridden(inner, self._shown, self._clock.now_s)

    def law(self, inner: StepLaw) -> StepLaw:
        """The law with what is slow or hangs."""
        found = SlowedLaw(inner, self._faults, self._clock.now_s)
        self._changed = found.changed
        return found

    def surface(self, inner: Surface, profile: types.Profile) -> Surface:
        """The surface with what it does not answer, or answers wrong."""
        self._surface = FaultySurface(inner, profile, self._faults, self._clock.now_s)
        return self._surface

    def attach(self, engine: Engine) -> None:
        """The engine is there."""
        self._engine = engine

    def before_generate(self, queue_limit: int | None) -> None:
        """Raises what a request for generation fails with, if it is to fail."""
        status = faults.drawn_status(self._faults, self._clock.now_s(), self._rng)
        if status == 503:
            raise QueueFull(f"{queue_limit or 0} requests wait already")
        if status is not None:
            raise faults.InjectedError("a fault was asked for")

    # What a client does to it.

    def put_queue(self, fields: Mapping[str, Any], *, replace: bool) -> None:
        """Show these waves from now on; ``replace``: and no others."""
        now_s = self._clock.now_s()
        self._settle()
        if replace:
            self._shown.clear()
        for name, document in fields.items():
            self._shown[name] = Shown(document, now_s)

    def drop_queue(self, name: str | None = None) -> None:
        """Show the truth again, of one metric or of all."""
        self._settle()
        for each in [name] if name else list(self._shown):
            self._shown.pop(each, None)

    def put_faults(self, fields: Mapping[str, Any], *, replace: bool) -> None:
        """Let these go wrong from now on; ``replace``: and nothing else."""
        self._settle()
        now_s = self._clock.now_s()
        lifted = self._remove(list(self._faults) if replace else list(fields))
        for kind, document in fields.items():
            self._faults[kind] = found = Injected(document, now_s)
            if isinstance(document, documents.Errors):
                self._rng = random.Random(document.seed)
            self._plan(kind, found)
        self._changed()
        self._lift(lifted)

    def drop_faults(self, kind: str | None = None) -> None:
        """All is well again, or all but the others."""
        self._settle()
        lifted = self._remove([kind] if kind else list(self._faults))
        self._changed()
        self._lift(lifted)

    def queue(self) -> dict[str, Any]:
        """The waves that are set, and what they and the truth are now."""
        self._settle()
        load = self._load
        assert load is not None
        real = {name: getattr(load, name) for name in documents.METRICS}
        shown = Overridden(load, self._shown, self._clock.now_s)
        return {
            "set": documents.shown({name: each.document for name, each in self._shown.items()}),
            "shown": {name: getattr(shown, name) for name in documents.METRICS},
            "real": real,
        }

    def faults(self) -> dict[str, Any]:
        """The faults that are set, and which of them hold."""
        return {
            "set": documents.shown({kind: each.fault for kind, each in self._faults.items()}),
            "holding": sorted(faults.holding(self._faults, self._clock.now_s())),
        }

    # Within.

    def _settle(self) -> None:
        """What lies behind happened under the rules that were."""
        if self._engine is not None:
            self._engine.settle()

    def _remove(self, kinds: Sequence[str]) -> frozenset[str]:
        """Take faults away; those that held."""
        held = faults.holding(self._faults, self._clock.now_s())
        for kind in kinds:
            timer = self._timers.pop(kind, None)
            if timer is not None:
                timer.cancel()
            self._faults.pop(kind, None)
        return held.intersection(kinds)

    def _lift(self, kinds: frozenset[str]) -> None:
        """A step that was held up ends, and so does the wait of whoever was not answered."""
        if self._engine is not None and kinds & {"hang", "slow"}:
            self._engine.end_step(0.0)
        self._release()

    def _release(self) -> None:
        if self._surface is not None:
            self._surface.release()

    def _plan(self, kind: str, found: Injected) -> None:
        """Have a timer for what must be done at a moment."""
        fault = found.fault
        if isinstance(fault, documents.Exit):
            self._at(kind, found.starts_s, lambda: self._on_exit(fault.code))
        elif isinstance(fault, documents.CounterReset):
            self._at(kind, found.starts_s, lambda: self._reset(found.starts_s, fault.every_s))
        elif kind == "hang":
            self._at(kind, found.starts_s, lambda: self._stall(found))
        elif kind == "scrape_gap" and found.ends_s < math.inf:
            self._at(kind, found.ends_s, self._release)

    def _at(self, kind: str, at_s: float, act: Callable[[], None]) -> None:
        delay_real_s = max(0.0, at_s - self._clock.now_s()) / self._clock.scale
        self._timers[kind] = asyncio.get_running_loop().call_later(delay_real_s, act)

    def _stall(self, found: Injected) -> None:
        """A hang begins: the step under way does not end either, before the hang does."""
        if self._engine is not None:
            self._engine.end_step(faults.FOR_EVER_S)
        if found.ends_s < math.inf:
            self._at("hang", found.ends_s, self._recover)

    def _recover(self) -> None:
        """A hang is over by itself."""
        found = self._faults.get("hang")
        if found is not None and found.holds(self._clock.now_s()):
            # The timer was early by less than it can count.
            self._at("hang", found.ends_s, self._recover)
        else:
            self._lift(frozenset({"hang"}))

    def _reset(self, at_s: float, every_s: float | None) -> None:
        assert self._surface is not None
        assert self._engine is not None
        self._surface.reset_counters(self._engine.unix_s())
        if every_s is not None:
            following_s = at_s + every_s
            self._at("counter_reset", following_s, lambda: self._reset(following_s, every_s))
