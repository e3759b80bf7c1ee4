"""The engine core: a step-level state machine without clock, chance or I/O.

A step starts when there is work, lasts what the step law says times a seeded jitter, and its tokens
appear at its end. Decisions are made at a step's start; a request that came or left during a step
counts from the next one. Call ``submit`` and ``cancel`` as things happen, then ``advance(now_s)``,
and again at ``next_wake()``. All times are emulated seconds.
"""

import math
import operator
import random

from modelserve.api.spec import BatchingMode
from modelserve.errors import InputError
from servelab.engine.core import policies
from servelab.engine.core.batch import Batch
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.intake import Intake, QueueFull
from servelab.engine.core.laws import StepLaw
from servelab.engine.core.pace import Pace
from servelab.engine.core.schedule import Plan
from servelab.engine.core.sequences import (
    CoreRequest,
    Finish,
    FinishReason,
    FirstToken,
    Output,
    Sequence,
)

_PLACE = operator.attrgetter("place")
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
        self._batch = Batch(config)
        self._pace = Pace(config, law, rng, self._batch)
        self._intake = Intake(config)
        self._scheduler = policies.scheduler(config, self._batch)
        self._sequences: dict[str, Sequence] = {}
        self._step: Plan | None = None
        self._clock_s = -math.inf  # the last step's end, or when work came to an idle engine
        self._now_s = -math.inf  # the latest time a caller gave
        self._outputs: list[Output] = []
        self._ids: tuple[str, ...] | None = None  # of the batch, until it changes
        self._shortest_s = law.step_s(1, 1, 0, 0, 1) * math.exp(-LUCK_SIGMAS * config.jitter)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._batch.waiting)

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._batch.running)

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
        if step.beat:
            tokens |= {name: 1 for name, each in self._batch.running.items() if each.counted}
        return [(name, tokens[name]) for name in self._batch.running if name in tokens]

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is under way."""
        return not self._sequences and self._step is None

    def submit(self, request: CoreRequest, now_s: float) -> None:
        """Queue a request. Raises QueueFull, TooLarge, or InputError for a duplicate id."""
        if request.id in self._sequences:
            raise InputError(f"request id {request.id} is in use: give each request its own")
        limit = self._intake.limit(request)
        self._run(now_s, start_now=False)
        config, batch = self.config, self._batch
        if config.queue_limit is not None:
            unscheduled = len(batch.waiting) - max(0, config.slots - len(batch.running))
            if unscheduled >= config.queue_limit:
                raise QueueFull(f"{config.queue_limit} requests wait already")
        sequence = Sequence(request, now_s, limit)
        self._sequences[sequence.id] = sequence
        batch.waiting.append(sequence)
        if self._step is None and now_s > self._clock_s:
            self._clock_s = now_s

    def cancel(self, request_id: str, now_s: float) -> None:
        """Drop a request; its blocks are free from the next step on. Unknown ids are ignored."""
        self._run(now_s, start_now=False)
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return
        batch, step = self._batch, self._step
        counted = sequence.counted
        batch.drop(sequence)
        self._ids = None
        finish = sequence.finish(FinishReason.ABORT, now_s)
        if step is None:
            batch.free(sequence)
        else:
            # What the step computes of it is in blocks that it has until the end.
            sequence.computed += counted and step.beat
            batch.leaving.append(sequence)
        self._outputs.append(Output((), (), finished=(finish,)))

    def advance(self, now_s: float) -> list[Output]:
        """Everything that came about up to now, in order; starts the next step if there is work."""
        self._run(now_s, start_now=True)
        outputs, self._outputs = self._outputs, []
        return outputs

    def settle(self, now_s: float, *, until_finish: bool = False) -> list[Output]:
        """As ``advance``, but a step due exactly now is not started yet.

        ``until_finish``: not even up to now, but to the end of the first step that ends a request.
        """
        self._run(now_s, start_now=False, until_finish=until_finish)
        outputs, self._outputs = self._outputs, []
        return outputs

    def end_step(self, end_s: float) -> None:
        """Let the step under way, if there is one, end then: something holds it up, or no longer.

        Not before a moment that a caller gave already.
        """
        if self._step is not None:
            self._step.end_s = max(end_s, self._now_s)

    def next_wake(self) -> float | None:
        """When ``advance`` has something to do or to tell; None while nothing runs or waits."""
        if self._outputs:
            return self._now_s
        if self._step is not None:
            return self._step.end_s
        return self._start_at() if self._sequences else None

    def no_finish_before_s(self) -> float | None:
        """A moment before which none of the present requests ends, whoever else comes.

        None while nothing runs or waits. Each step gives a request one token at most, and none is
        shorter than one that decodes a single sequence, its jitter ``LUCK_SIGMAS`` on the short
        side. So a caller who waits for ends need not look at every step.
        """
        wake_s = self.next_wake()
        if wake_s is None or self._outputs:
            return wake_s
        batch = self._batch
        steps = batch.decoding.beats_to_end() if batch.decoding.count else 2**62
        for queue in (batch.partial, batch.waiting):
            for sequence in queue:
                steps = min(steps, sequence.limit - sequence.output_tokens)
        # Of a step under way the end is known, and one that has not started ends later.
        return wake_s + (steps - (self._step is not None)) * self._shortest_s

    def _start_at(self) -> float:
        """When the next step may start: at once, or when an idle engine's first request may."""
        batch, config = self._batch, self.config
        if batch.running or not batch.waiting:
            return self._clock_s
        delay_s = config.front_s
        if config.batching == BatchingMode.DYNAMIC and len(batch.waiting) < config.slots:
            delay_s = max(delay_s, config.gather_s)
        return max(self._clock_s, batch.waiting[0].arrived_s + delay_s)

    def _run(self, now_s: float, *, start_now: bool, until_finish: bool = False) -> None:
        """Finish and start steps up to now. One due exactly now starts only if ``start_now``."""
        if now_s > self._now_s:
            self._now_s = now_s
        while True:
            if self._step is not None:
                if self._step.end_s > now_s:
                    return
                if self._end(self._step) and until_finish:
                    return
            if not self._sequences:
                return
            start_s = self._start_at()
            if start_s > now_s or (start_s == now_s and not start_now):
                return
            if self._jumps and start_s < now_s and self._jump(start_s, now_s):
                if self._outputs[-1].finished and until_finish:
                    return
            else:
                self._start(start_s)

    def _jump(self, start_s: float, now_s: float) -> bool:
        """Run the steps in which all decode and nobody starts; whether there were any."""
        batch, scheduler = self._batch, self._scheduler
        ready_s = scheduler.ready_s() if batch.waiting else math.inf
        if ready_s <= start_s or (steps := scheduler.beats()) == 0:
            return False
        ends_s = self._pace.ends_s(steps, start_s, ready_s, now_s)
        if not ends_s:
            return False
        steps, at_s = len(ends_s), ends_s[-1]
        batch.decode(steps)
        ids = self._decoded_ids()
        ended = batch.decoding.beat(steps, at_s)
        finished = self._leave(ended, at_s) if ended else ()
        self._clock_s = at_s
        self._outputs.append(tuple.__new__(Output, (tuple(ends_s), ids, (), finished, (), 0)))
        return True

    def _start(self, start_s: float) -> None:
        if not self._batch.running:
            self._pace.start()
        plan = self._scheduler.plan(start_s)
        if plan.started or plan.preempted:
            self._ids = None
        duration_s, plan.prefill_tokens = self._pace.step_s(plan)
        plan.end_s = start_s + duration_s
        self._step = plan

    def _end(self, plan: Plan) -> bool:
        """Apply a step, after which finished and cancelled ones leave; whether any finished."""
        batch, at_s = self._batch, plan.end_s
        ended = batch.decoding.beat(1, at_s) if plan.beat else []
        firsts: list[FirstToken] = []
        if plan.parts:
            ids, done = self._compute(plan, at_s, firsts)
            ended += done
            ended.sort(key=_PLACE)
        else:
            ids = self._decoded_ids()
        finished = self._leave(ended, at_s) if ended else ()
        for sequence in batch.leaving:
            batch.free(sequence)
        batch.leaving.clear()
        self._step = None
        self._clock_s = at_s
        alive = self._sequences
        preempted = tuple([each.id for each in plan.preempted if alive.get(each.id) is each])
        output = ((at_s,), ids, tuple(firsts), finished, preempted, plan.prefill_tokens)
        self._outputs.append(tuple.__new__(Output, output))
        return bool(finished)

    def _compute(
        self, plan: Plan, at_s: float, firsts: list[FirstToken]
    ) -> tuple[tuple[str, ...], list[Sequence]]:
        """Count what a step computed of single sequences; who got a token, and who has all now."""
        batch = self._batch
        running, join = batch.running, batch.decoding.join
        ids: list[str] = []
        done: list[Sequence] = []
        for sequence, tokens in plan.parts:
            sequence.computed += tokens
            known = sequence.known
            if sequence.computed < known or running.get(sequence.id) is not sequence:
                continue
            sequence.known = known + 1
            sequence.last_token_s = at_s
            ids.append(sequence.id)
            if sequence.first_token_s is None:
                sequence.first_token_s = at_s
                first = (
                    sequence.id,
                    at_s,
                    sequence.arrived_s,
                    sequence.prompt_tokens,
                    sequence.cached_tokens,
                )
                firsts.append(tuple.__new__(FirstToken, first))
            if known + 1 - sequence.prompt_tokens < sequence.limit:
                join(sequence)
            else:
                done.append(sequence)
        batch.partial = [each for each in batch.partial if not each.counted and each not in done]
        return (self._decoded_ids() if plan.beat else tuple(ids)), done

    def _decoded_ids(self) -> tuple[str, ...]:
        """Who got a token in a beat: all but those with more to compute."""
        batch, ids = self._batch, self._ids
        if batch.partial:
            left = {sequence.id for sequence in batch.partial}
            return tuple([name for name in batch.running if name not in left])
        if ids is None:
            ids = self._ids = tuple(batch.running)
        return ids

    def _leave(self, ended: list[Sequence], at_s: float) -> tuple[Finish, ...]:
        """Those with all their tokens go, in the batch's order."""
        batch, alive = self._batch, self._sequences
        for sequence in ended:
            del alive[sequence.id], batch.running[sequence.id]
            batch.free(sequence)
        self._ids = None
        return tuple([sequence.finish(sequence.reason, at_s) for sequence in ended])
