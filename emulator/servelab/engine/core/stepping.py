"""The engine core: a step-level state machine without clock, chance or I/O.

A step starts when there is work, lasts what the step law says times a seeded jitter, and its tokens
appear at its end. Decisions are made at a step's start; a request that came or left during a step
counts from the next one, with ``lag`` from the one after it. Call ``submit`` and ``cancel`` as
things happen, then ``advance(now_s)``, and again at ``next_wake()``. Times are emulated seconds.
"""

import math
import random

from modelserve.api.spec import BatchingMode
from modelserve.errors import InputError
from servelab.engine.core import policies
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.deciding import Decisions
from servelab.engine.core.intake import Intake, QueueFull
from servelab.engine.core.laws import StepLaw
from servelab.engine.core.pace import Pace
from servelab.engine.core.plans import Plan
from servelab.engine.core.sequences import PLACE, CoreRequest, Output, Sequence
from servelab.engine.core.tally import Tally

# A jitter this far on the short side does not happen.
LUCK_SIGMAS = 8.0


class EngineCore:
    """One engine: requests in, tokens with their times out."""

    def __init__(
        self, config: CoreConfig, law: StepLaw, rng: random.Random, *, jumps: bool = True
    ) -> None:
        """``jumps`` off: every step by itself; the tokens' times are the same."""
        self.config = config
        self._jumps = jumps
        self._batch, self._scheduler = policies.make(config)
        self._pace = Pace(config, law, rng, self._batch)
        self._intake = Intake(config)
        self._tally = Tally(self._batch)
        self._decisions = Decisions(config, self._batch, self._scheduler)
        self._step: Plan | None = None
        self._clock_s = -math.inf  # the last step's end, or when work came to an idle engine
        self._now_s = -math.inf  # the latest time a caller gave
        self._held_s: float | None = None  # since when no step starts or ends
        self._shortest_s = law.step_s(1, 1, 0, 0, 1) * math.exp(-LUCK_SIGMAS * config.jitter)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        batch = self._batch
        return len(batch.waiting) - batch.left[1] if batch.leaving else len(batch.waiting)

    @property
    def running(self) -> int:
        """Requests in the batch."""
        batch = self._batch
        return len(batch.running) - len(batch.ghosts) - (batch.left[0] if batch.leaving else 0)

    @property
    def kv_usage(self) -> float:
        """Share of KV blocks in use, 0 to 1."""
        pool = self._batch.pool
        return (pool.size - pool.free) / pool.size

    @property
    def prefix_tokens(self) -> tuple[int, int]:
        """Tokens looked up in the prefix cache so far, and those found."""
        return self._batch.prefix_queries, self._batch.prefix_hits

    @property
    def plan(self) -> Plan | None:
        """The step under way."""
        return self._step

    @property
    def scheduled(self) -> list[tuple[str, int]]:
        """Tokens by request in the step under way, in the batch's order."""
        step = self._step
        if step is None:
            return []
        tokens = {sequence.id: count for sequence, count in step.parts}
        running = [*self._batch.running.values(), *step.wasted]
        if step.beat:
            tokens |= {each.id: 1 for each in running if each.counted}
        if step.wasted:
            tokens |= {each.id: 1 for each in step.wasted}
            running.sort(key=PLACE)
        return [(each.id, tokens[each.id]) for each in running if each.id in tokens]

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is under way."""
        return self._step is None and not self._goes_on

    def submit(self, request: CoreRequest, now_s: float) -> None:
        """Queue a request. Raises QueueFull, TooLarge, or InputError for a duplicate id."""
        if request.id in self._tally.alive:
            raise InputError(f"request id {request.id} is in use: give each request its own")
        limit = self._intake.limit(request)
        if self._step is None or self._step.end_s <= now_s:
            self._run(now_s, start_now=False)
        elif now_s > self._now_s:
            self._now_s = now_s
        config, batch = self.config, self._batch
        if config.queue_limit is not None:
            unscheduled = self.waiting - max(0, config.slots - self.running)
            if unscheduled >= config.queue_limit:
                raise QueueFull(f"{config.queue_limit} requests wait already")
        sequence = Sequence(request, now_s, limit)
        self._tally.alive[sequence.id] = sequence
        batch.queue(sequence)
        if self._step is None and now_s > self._clock_s:
            self._clock_s = now_s

    def cancel(self, request_id: str, now_s: float) -> None:
        """Drop a request; its blocks are free when the scheduler knows. Unknown ids are ignored."""
        self._run(now_s, start_now=False)
        sequence = self._tally.cancel(request_id, now_s)
        if sequence is None:
            return
        self._decisions.drop(sequence, self._step, now_s, held=self._held_s is not None)
        if not self._tally.alive and self._batch.ghosts:
            self._decisions.let_go()

    def advance(self, now_s: float) -> list[Output]:
        """Everything that came about up to now, in order; starts the next step if there is work."""
        self._run(now_s, start_now=True)
        return self._tally.take()

    def settle(self, now_s: float, *, until_finish: bool = False) -> list[Output]:
        """As ``advance``, but a step due exactly now is not started yet.

        ``until_finish``: not even up to now, but to the end of the first step that ends a request.
        """
        self._run(now_s, start_now=False, until_finish=until_finish)
        return self._tally.take()

    def end_step(self, end_s: float) -> None:
        """Let the step under way, if there is one, end then: something holds it up, or no longer.

        Not before a moment that a caller gave already.
        """
        if self._step is not None:
            self._step.end_s = max(end_s, self._now_s)

    def hold(self, now_s: float, *, requeue: bool = False) -> None:
        """Start and end no step until ``release``; what is under way ends so much later.

        ``requeue``: the step under way is waited for, and all that run lose their blocks and queue
        up again.
        """
        self._run(now_s, start_now=False)
        held_s, self._held_s = self._held_s, None
        if requeue:
            self.end_step(now_s)
            self._run(now_s, start_now=False)
            self._batch.bury()
            self._batch.dismiss()
            for sequence in list(self._batch.running.values()):
                self._batch.preempt(sequence, to_end=True)
            self._tally.regroup()
        self._held_s = self._now_s if held_s is None else held_s

    def release(self, now_s: float) -> None:
        """Go on after ``hold``."""
        held_s, self._held_s = self._held_s, None
        if held_s is None:
            return
        now_s = max(now_s, self._now_s)
        if self._step is not None:
            self._step.end_s += now_s - held_s
        self._clock_s = max(self._clock_s, now_s)

    def forget(self, now_s: float) -> bool:
        """Empty the prefix cache, if nothing runs, and nothing waits but for ``release``.

        A scheduler looks between two steps: one whose requests have all ended is over by then.
        """
        self._run(now_s, start_now=False)
        if not self._tally.alive:
            self.end_step(now_s)
            self._run(now_s, start_now=False)
        batch = self._batch
        held = self._held_s is not None
        if self._step is not None or self.running or (batch.waiting and not held):
            return False
        batch.bury()
        batch.dismiss()
        batch.pool.forget()
        return True

    def next_wake(self) -> float | None:
        """When ``advance`` has something to do or to tell; None while nothing runs or waits."""
        if self._tally.outputs:
            return self._now_s
        if self._held_s is not None:
            return None
        if self._step is not None:
            return self._step.end_s
        return self._start_at() if self._goes_on else None

    def no_finish_before_s(self) -> float | None:
        """A moment before which none of the present requests ends, whoever else comes.

        None while nothing runs or waits. Each step gives a request one token at most, and none is
        shorter than one that decodes a single sequence, its jitter ``LUCK_SIGMAS`` on the short
        side. So a caller who waits for ends need not look at every step.
        """
        wake_s = self.next_wake()
        if wake_s is None or self._tally.outputs:
            return wake_s
        batch = self._batch
        steps = batch.decoding.beats_to_end() if batch.decoding.count else 2**62
        for queue in (batch.partial, batch.waiting):
            for sequence in queue:
                steps = min(steps, sequence.limit - sequence.output_tokens)
        # Of a step under way the end is known, and one that has not started ends later.
        return wake_s + (steps - (self._step is not None)) * self._shortest_s

    @property
    def _goes_on(self) -> bool:
        """Whether there is anybody, at least for the scheduler."""
        return bool(self._tally.alive or self._batch.ghosts or self._batch.leaving)

    def _start_at(self) -> float:
        """When the next step may start: at once, or when an idle engine's first request may."""
        batch, config = self._batch, self.config
        if batch.running or not batch.waiting:
            return self._clock_s
        delay_s = config.front_s
        if config.batching == BatchingMode.DYNAMIC and len(batch.waiting) < config.slots:
            delay_s = max(delay_s, config.gather_s)
        return max(self._clock_s, batch.oldest_s + delay_s)

    def _run(self, now_s: float, *, start_now: bool, until_finish: bool = False) -> None:
        """Finish and start steps up to now. One due exactly now starts only if ``start_now``."""
        if now_s > self._now_s:
            self._now_s = now_s
        batch, alive = self._batch, self._tally.alive
        while self._held_s is None:
            step = self._step
            if step is not None:
                if step.end_s > now_s:
                    return
                if self._end(step) and until_finish:
                    return
            if batch.ghosts:
                self._decisions.let_go()
            if not (alive or batch.ghosts or batch.leaving):
                return
            start_s = self._clock_s if batch.running else self._start_at()
            if start_s > now_s or (start_s == now_s and not start_now):
                return
            # No step is shorter, and one with somebody who has more to compute is no beat.
            fits = start_s < now_s and start_s + self._shortest_s <= now_s
            if self._jumps and fits and not batch.partial and self._jump(start_s, now_s):
                if self._tally.outputs[-1].finished and until_finish:
                    return
            else:
                self._start(start_s)

    def _jump(self, start_s: float, now_s: float) -> bool:
        """Run the steps in which all decode and nobody starts; whether there were any."""
        batch, scheduler, decisions = self._batch, self._scheduler, self._decisions
        if batch.leaving or (batch.ghosts and any(map(batch.wastes, batch.ghosts))):
            return False
        ready_s = scheduler.ready_s() if batch.waiting else math.inf
        known_s = decisions.known_s(start_s)
        if ready_s <= known_s or (steps := scheduler.beats()) == 0:
            return False
        if batch.ghosts:
            steps = 1  # then they have left
        ends_s = self._pace.ends_s(steps, start_s, ready_s, now_s)
        if not ends_s:
            return False
        batch.decode(len(ends_s))
        decisions.follow(start_s, ends_s)
        self._clock_s = ends_s[-1]
        if self._tally.beats(ends_s) and not self._tally.alive:
            decisions.let_go()
        return True

    def _start(self, start_s: float) -> None:
        """Start a step, unless nobody is left for it."""
        if not self._batch.running:
            self._pace.start()
        plan = self._decisions.next(start_s)
        if plan.started or plan.preempted:
            self._tally.regroup()
        if self._tally.alive or plan.wasted or plan.parts:
            duration_s, plan.prefill_tokens = self._pace.step_s(plan)
            plan.end_s = start_s + duration_s
            self._step = plan

    def _end(self, plan: Plan) -> bool:
        """Apply a step; whether anybody finished."""
        batch, tally = self._batch, self._tally
        finished = tally.step(plan)
        if batch.leaving and not batch.lag:
            batch.dismiss()
        self._step = None
        self._clock_s = plan.end_s
        if finished and batch.lag and not tally.alive:
            self._decisions.let_go()
        return finished
