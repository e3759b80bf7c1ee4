"""When a step is decided, and what is known then.

Without a lag that is at its start. With one it is at the start of the step before, if there was
one: who came since then is not known yet, and of those who have ended or were cancelled since then
the step computes what it would have.
"""

import math

from servelab.engine.core.batch import Batch
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.plans import Plan, Scheduler
from servelab.engine.core.sequences import Sequence


class Decisions:
    """The decisions of a scheduler, each as of its time."""

    __slots__ = ("_batch", "_front_s", "_lag", "_made_s", "_scheduler")

    def __init__(self, config: CoreConfig, batch: Batch, scheduler: Scheduler) -> None:
        self._batch = batch
        self._scheduler = scheduler
        self._front_s = config.front_s
        self._lag = config.lag
        self._made_s = -math.inf  # when the next step is decided, if that lags

    def next(self, start_s: float) -> Plan:
        """What the step that starts then computes."""
        if not self._lag:
            return self._scheduler.plan(start_s)
        batch = self._batch
        plan = self._scheduler.plan(self._made_s if batch.running else start_s)
        if not (plan.parts or plan.wasted or batch.decoding.count):
            # There was nothing to do, so it was decided again when that step had ended.
            batch.settle()
            batch.dismiss()
            gone, plan = plan.preempted, self._scheduler.plan(start_s)
            plan.preempted = gone + plan.preempted
        if batch.leaving:
            self.dismiss(plan)
        batch.settle()
        self._made_s = start_s
        return plan

    def known_s(self, start_s: float) -> float:
        """Who came up to then is known when the step that starts at the given time is decided."""
        return self._made_s if self._lag and self._batch.running else start_s

    def follow(self, start_s: float, ends_s: list[float]) -> None:
        """Beats are decided one after the other, of which the first starts then."""
        if self._lag:
            self._batch.settle()
            self._made_s = ends_s[-2] if len(ends_s) > 1 else start_s

    def drop(self, sequence: Sequence, step: Plan | None, now_s: float, *, held: bool) -> None:
        """One is cancelled; its blocks are free when that is known."""
        batch = self._batch
        runs = batch.running.get(sequence.id) is sequence
        late = self._lag and batch.running and now_s > self._made_s and not (held and step is None)
        known = runs or (late and sequence.arrived_s + self._front_s <= self._made_s)
        if not known:
            batch.waiting.remove(sequence)
            return
        batch.leaving[sequence] = None
        if not (late or (step is not None and not self._lag)):
            self.dismiss(step)

    def dismiss(self, step: Plan | None) -> None:
        """It is known who has left; what a step computes of them it computes in vain."""
        if step is None:
            self._batch.dismiss()
        else:
            step.wasted += self._batch.dismiss(step.parts, beat=step.beat)

    def let_go(self) -> None:
        """If only ghosts run and nobody was known to wait, they are gone before the next step."""
        batch = self._batch
        ghosts = batch.ghosts
        if len(batch.running) > len(ghosts) or any(map(batch.wastes, ghosts)):
            return
        if not batch.waiting or batch.oldest_s + self._front_s > self._made_s:
            batch.bury()
