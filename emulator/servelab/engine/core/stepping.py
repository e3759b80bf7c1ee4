"""The engine core: a step-level state machine without clock, chance or I/O.

A step starts when there is work, lasts what the step law says times a seeded jitter, and its tokens
appear at its end. Decisions are made at a step's start; a request that came or left during a step
counts from the next one. Call ``submit`` and ``cancel`` as things happen, then ``advance(now_s)``,
and again at ``next_wake()``. All times are emulated seconds.
"""

import math
import random

from modelserve.api.spec import BatchingMode
from modelserve.errors import InputError, ModelServeError
from servelab.engine.core.laws import StepLaw as StepLaw
from servelab.engine.core.schedule import CoreConfig, Plan, Scheduler
from servelab.engine.core.sequences import CoreRequest, FinishReason, FirstToken, Output, Sequence


class QueueFull(ModelServeError):
    """As many requests wait as may."""


class TooLarge(InputError):
    """The request can never fit into the KV cache or the model's length."""


class Step:
    """A step under way."""

    __slots__ = ("end_s", "plan", "prefill_tokens")

    def __init__(self, plan: Plan, end_s: float, prefill_tokens: int) -> None:
        self.plan = plan
        self.end_s = end_s
        self.prefill_tokens = prefill_tokens


class EngineCore:
    """One engine: requests in, tokens with their times out."""

    def __init__(
        self, config: CoreConfig, law: StepLaw, rng: random.Random, *, jumps: bool = True
    ) -> None:
        """``jumps`` off: every step by itself; the tokens' times are the same."""
        self.config = config
        self._jumps = jumps
        self._law = law
        self._rng = rng
        self._scheduler = Scheduler(config)
        self._sequences: dict[str, Sequence] = {}
        self._step: Step | None = None
        self._clock_s = -math.inf  # the last step's end, or when work came to an idle engine
        self._now_s = -math.inf  # the latest time a caller gave
        self._outputs: list[Output] = []
        self._cancelled: list[Sequence] = []
        self._batch_size = 0
        self._last_step_s = 0.0
        self._drawn_s: float | None = None  # of a step that a jump began and could not end

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._scheduler.waiting)

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._scheduler.running)

    @property
    def kv_usage(self) -> float:
        """Share of KV blocks in use, 0 to 1."""
        return 1.0 - self._scheduler.free_blocks / self.config.kv_blocks

    @property
    def prefix_tokens(self) -> tuple[int, int]:
        """Tokens looked up in the prefix cache so far, and those found."""
        return self._scheduler.prefix_queries, self._scheduler.prefix_hits

    @property
    def plan(self) -> Plan | None:
        """What the step under way computes."""
        return self._step.plan if self._step is not None else None

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is under way."""
        return not self._sequences and self._step is None

    def submit(self, request: CoreRequest, now_s: float) -> None:
        """Queue a request. Raises QueueFull, TooLarge, or InputError for a duplicate id."""
        limit = self._limit(request)
        self._run(now_s, start_now=False)
        config, scheduler = self.config, self._scheduler
        if config.queue_limit is not None:
            unscheduled = len(scheduler.waiting) - max(0, config.slots - len(scheduler.running))
            if unscheduled >= config.queue_limit:
                raise QueueFull(f"{config.queue_limit} requests wait already")
        sequence = Sequence(request, now_s, limit)
        self._sequences[request.id] = sequence
        scheduler.waiting.append(sequence)
        self._clock_s = max(self._clock_s, now_s) if self._step is None else self._clock_s

    def cancel(self, request_id: str, now_s: float) -> None:
        """Drop a request; its blocks are free from the next step on. Unknown ids are ignored."""
        self._run(now_s, start_now=False)
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return
        if self._step is None:
            self._scheduler.remove(sequence)
        else:
            self._cancelled.append(sequence)
        finish = sequence.finish(FinishReason.ABORT, now_s)
        self._outputs.append(Output((), (), finished=(finish,)))

    def advance(self, now_s: float) -> list[Output]:
        """Everything that came about up to now, in order; starts the next step if there is work."""
        self._run(now_s, start_now=True)
        outputs, self._outputs = self._outputs, []
        return outputs

    def settle(self, now_s: float) -> list[Output]:
        """As ``advance``, but a step due exactly now is not started yet."""
        self._run(now_s, start_now=False)
        outputs, self._outputs = self._outputs, []
        return outputs

    def next_wake(self) -> float | None:
        """When ``advance`` has something to do or to tell; None while nothing runs or waits."""
        if self._outputs:
            return self._now_s
        if self._step is not None:
            return self._step.end_s
        return self._start_at() if self._sequences else None

    def _limit(self, request: CoreRequest) -> int:
        config = self.config
        if request.prompt_tokens < 1 or request.max_tokens < 1:
            raise InputError(f"request {request.id} needs at least one prompt and one output token")
        if request.id in self._sequences:
            raise InputError(f"request id {request.id} is in use: give each request its own")
        limit = min(request.max_tokens, config.max_model_tokens - request.prompt_tokens)
        blocks = config.blocks_for(request.prompt_tokens + limit - 1)
        if limit < 1 or (blocks > config.kv_blocks and config.refuse_oversized):
            room = min(config.max_model_tokens, config.kv_blocks * config.block_size)
            raise TooLarge(
                f"request {request.id} needs {request.prompt_tokens + request.max_tokens} tokens "
                f"and the engine holds {room}: shorten it"
            )
        return limit

    def _start_at(self) -> float:
        """When the next step may start: at once, or when an idle engine's first request may."""
        scheduler, config = self._scheduler, self.config
        if scheduler.running or not scheduler.waiting:
            return self._clock_s
        delay_s = config.front_s
        if config.batching == BatchingMode.DYNAMIC and len(scheduler.waiting) < config.slots:
            delay_s = max(delay_s, config.gather_s)
        return max(self._clock_s, scheduler.waiting[0].arrived_s + delay_s)

    def _run(self, now_s: float, start_now: bool) -> None:
        """Finish and start steps up to now. One due exactly now starts only if ``start_now``."""
        self._now_s = max(self._now_s, now_s)
        while True:
            if self._step is not None:
                if self._step.end_s > now_s:
                    return
                self._end(self._step)
            if not self._sequences:
                return
            start_s = self._start_at()
            if start_s > now_s or (start_s == now_s and not start_now):
                return
            if self._jumps and now_s - start_s > 2 * self._last_step_s:
                start_s = self._jump(start_s, now_s)
                if start_s > now_s or (start_s == now_s and not start_now):
                    return
            self._start(start_s)

    def _jump(self, start_s: float, now_s: float) -> float:
        """Run the steps in which nothing but decoding happens; the time the next one may start."""
        scheduler = self._scheduler
        running = scheduler.running
        steps = self._steps_alike()
        if steps < 2:
            return start_s
        context = sum(sequence.known for sequence in running)
        times_s: list[float] = []
        end_s = start_s
        while len(times_s) < steps and end_s < now_s:
            duration_s = self._step_s(len(running), context, 0, 0, 0)
            if end_s + duration_s > now_s:
                self._drawn_s = duration_s
                break
            end_s += duration_s
            times_s.append(end_s)
            context += len(running)
        if times_s:
            scheduler.decode(len(times_s), end_s)
            ids = tuple(sequence.id for sequence in running)
            self._outputs.append(Output(tuple(times_s), ids))
            self._clock_s = end_s
        return end_s

    def _steps_alike(self) -> int:
        """Steps from here on in which the batch stays as it is and has blocks enough."""
        scheduler, config = self._scheduler, self.config
        running = scheduler.running
        if not running or config.batching == BatchingMode.STATIC:
            return 0
        if len(running) > config.max_batched_tokens or scheduler.may_admit():
            return 0
        if not all(sequence.decoding for sequence in running):
            return 0
        until_end = min(sequence.limit - sequence.output_tokens for sequence in running) - 1
        return min(until_end, scheduler.free_blocks // len(running) * config.block_size)

    def _start(self, start_s: float) -> None:
        scheduler = self._scheduler
        if not scheduler.running:
            self._batch_size = 0
        plan = scheduler.plan(start_s)
        decodes = context = prefill = prefill_context = prompts = 0
        for sequence, tokens in plan.scheduled:
            if tokens == 1 and sequence.decoding:
                decodes += 1
                context += sequence.known
            else:
                prefill += tokens
                prefill_context += sequence.computed
                prompts += 1
        if self.config.batching == BatchingMode.STATIC:
            # A static batch keeps its shape: the slots of finished members are computed as padding.
            self._batch_size = max(self._batch_size, len(scheduler.running))
            decodes = max(decodes, self._batch_size - (len(plan.scheduled) - decodes))
        end_s = start_s + self._step_s(decodes, context, prefill, prefill_context, prompts)
        self._last_step_s = end_s - start_s
        self._step = Step(plan, end_s, prefill)

    def _step_s(
        self, decodes: int, context: int, prefill: int, prefill_context: int, prompts: int
    ) -> float:
        if self._drawn_s is not None:
            duration_s, self._drawn_s = self._drawn_s, None
            return duration_s
        duration_s = self._law.step_s(decodes, context, prefill, prefill_context, max(1, prompts))
        jitter = self.config.jitter
        if jitter > 0:
            duration_s *= math.exp(self._rng.gauss(0.0, jitter) - jitter * jitter / 2)
        return duration_s

    def _end(self, step: Step) -> None:
        """Apply a step: computed tokens count, finished and cancelled sequences leave."""
        at_s = step.end_s
        ids: list[str] = []
        firsts: list[FirstToken] = []
        finished = []
        alive = self._sequences
        done: list[Sequence] = []
        for sequence, tokens in step.plan.scheduled:
            sequence.computed += tokens
            if sequence.computed < sequence.known or sequence.id not in alive:
                continue
            sequence.known += 1
            sequence.output_tokens += 1
            sequence.last_token_s = at_s
            ids.append(sequence.id)
            if sequence.first_token_s is None:
                sequence.first_token_s = at_s
                firsts.append(
                    FirstToken(
                        *(sequence.id, at_s, sequence.arrived_s),
                        *(sequence.prompt_tokens, sequence.cached_tokens),
                    )
                )
            if sequence.output_tokens >= sequence.limit:
                done.append(sequence)
                del alive[sequence.id]
                finished.append(sequence.finish(sequence.reason, at_s))
        self._leave(done)
        self._step = None
        self._clock_s = at_s
        preempted = tuple(victim.id for victim in step.plan.preempted if victim.id in alive)
        self._outputs.append(
            Output(
                (at_s,), tuple(ids), tuple(firsts), tuple(finished), preempted, step.prefill_tokens
            )
        )

    def _leave(self, done: list[Sequence]) -> None:
        """Finished ones leave in the batch's order, then cancelled ones."""
        scheduler = self._scheduler
        if done:
            gone = set(done)
            scheduler.running = [each for each in scheduler.running if each not in gone]
            for sequence in done:
                scheduler.free(sequence)
        for sequence in self._cancelled:
            scheduler.remove(sequence)
        self._cancelled.clear()
