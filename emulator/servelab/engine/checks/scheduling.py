"""Replays a recording of vLLM's own scheduler through our core, and tells where they differ.

A recording is a list of cases, each a configuration, the requests with the step at which they come,
aborts, and what the scheduler decided at each step.
"""

import random
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from servelab.engine.core import laws
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.plans import Plan
from servelab.engine.core.sequences import CoreRequest, FinishReason, Output
from servelab.engine.core.stepping import EngineCore

_STEP_S = 1.0
_USAGE_DIGITS = 6
_ANSWER_ID = -1  # the token of all answers

Count = Annotated[int, pydantic.Field(ge=1)]
Segment = tuple[int, Annotated[int, pydantic.Field(ge=0)]]


class Limits(pydantic.BaseModel):
    """A recorded configuration; one of the blocks is vLLM's null block.

    ``tables`` are the KV cache groups of a model with sliding windows: a window, or null. With
    ``async_scheduling`` a recorded step is as it was decided, with what came of the one before it.
    Fields that a recording may leave out are vLLM's own, with its defaults.
    """

    max_num_seqs: Count
    max_num_batched_tokens: Count
    max_model_len: Count
    num_gpu_blocks: Annotated[int, pydantic.Field(ge=2)]
    block_size: Count = 16
    prefix_caching: bool = False
    long_prefill_token_threshold: Annotated[int, pydantic.Field(ge=0)] | None = 0
    tables: Annotated[list[Count | None], pydantic.Field(min_length=1)] = [None]
    async_scheduling: bool = False
    policy: Literal["fcfs", "priority"] = "fcfs"
    enable_chunked_prefill: bool = True
    max_num_active_seqs: Count | None = None
    long_prefill_token_threshold_adaptive: bool = False
    scheduler_reserve_full_isl: bool = True
    watermark: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)] = 0.0
    prefill_schedule_interval: Count = 1

    def core_config(self) -> CoreConfig:
        """The same limits for our core."""
        return CoreConfig(
            max_sequences=min(self.max_num_seqs, self.max_num_active_seqs or self.max_num_seqs),
            max_batched_tokens=self.max_num_batched_tokens,
            max_model_tokens=self.max_model_len,
            kv_blocks=self.num_gpu_blocks - 1,
            block_size=self.block_size,
            prefix_caching=self.prefix_caching,
            chunked_prefill=self.enable_chunked_prefill,
            long_prefill_tokens=self.long_prefill_token_threshold or 0,
            fair_prefills=self.long_prefill_token_threshold_adaptive,
            reserve_prompts=self.scheduler_reserve_full_isl,
            spare_blocks=int(self.watermark * self.num_gpu_blocks),
            refuse_oversized=False,
            tables=tuple(self.tables),
            front_s=-_STEP_S / 2 if self.async_scheduling else 0.0,
            lag=self.async_scheduling,
            prefill_interval=self.prefill_schedule_interval,
            by_priority=self.policy == "priority",
        )


class Arrival(pydantic.BaseModel):
    """A request; its prompt is made of segments of a seed and a length.

    ``stop_after``: so many tokens, of which the last is one to stop at.
    """

    id: str
    step: int
    prompt: Annotated[list[Segment], pydantic.Field(min_length=1)]
    max_tokens: Count
    stop_after: Count | None = None
    priority: int = 0


class Abort(pydantic.BaseModel):
    """A request is dropped before the step is scheduled."""

    step: int
    id: str


class Step(pydantic.BaseModel):
    """What was decided in a step, and how things stood after it; an idle one has nothing."""

    step: int
    idle: bool = False
    scheduled: dict[str, int] = {}
    new_cached: dict[str, int] = {}
    preempted: list[str] = []
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    finished: list[str] = []

    def comparable(self) -> dict[str, object]:
        """What must be equal; the order of what is scheduled counts, that of sets does not."""
        return {
            "scheduled": [list(item) for item in self.scheduled.items()],
            "new_cached": self.new_cached,
            "preempted": sorted(self.preempted),
            "running": self.running,
            "waiting": self.waiting,
            "kv_usage": round(self.kv_usage, _USAGE_DIGITS),
            "finished": sorted(self.finished),
        }


class Case(pydantic.BaseModel):
    """One run."""

    name: str
    config: Limits
    requests: list[Arrival]
    aborts: list[Abort] = []
    steps: list[Step]


RECORDING = pydantic.TypeAdapter(list[Case])


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step of a case that is not equal, with only what differs in it."""

    case: str
    step: int
    real: dict[str, object]
    ours: dict[str, object]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many steps were compared and equal; a case's first difference, if it has one."""

    cases: int
    steps: int
    equal: int
    first_differences: Seq[Difference]


@dataclass(frozen=True, slots=True)
class SegmentTokens:
    """A prompt's tokens: equal segments give equal ones; then the answer's."""

    segments: Seq[Segment]

    def ids(self, first: int, count: int) -> Seq[int]:
        prompt = [hash((seed, place)) for seed, length in self.segments for place in range(length)]
        ids = prompt[first : first + count]
        return ids + [_ANSWER_ID] * (count - len(ids))


def compare(cases: Seq[Case]) -> Verdict:
    """Replay all cases. Raises InputError for requests that no scheduler takes."""
    steps = equal = 0
    differences: list[Difference] = []
    for case in cases:
        first: Difference | None = None
        for real, ours in zip(case.steps, replay(case), strict=True):
            left, right = real.comparable(), ours.comparable()
            steps += 1
            equal += left == right
            if left != right and first is None:
                keys = [key for key in left if left[key] != right[key]]
                first = Difference(
                    *(case.name, real.step),
                    *({key: side[key] for key in keys} for side in (left, right)),
                )
        if first is not None:
            differences.append(first)
    return Verdict(len(cases), steps, equal, differences)


def replay(case: Case) -> list[Step]:
    """What our core does at each recorded step."""
    config = case.config.core_config()
    core = EngineCore(config, laws.SteadyLaw(_STEP_S), random.Random(0), jumps=False)
    arrivals = sorted(case.requests, key=lambda arrival: arrival.step)
    aborts = sorted(case.aborts, key=lambda abort: abort.step)
    steps: list[Step] = []
    for real in case.steps:
        now_s = real.step * _STEP_S
        _bring(core, arrivals, aborts, real.step, now_s)
        if not config.lag:
            steps.append(_step(core, real.step))
            continue
        steps.append(_decided(core, real.step))
        if not core.idle:
            # The next step is decided as soon as this one starts.
            _bring(core, arrivals, aborts, real.step + 1, now_s, later_s=_STEP_S / 4)
    return steps


def _bring(
    core: EngineCore,
    arrivals: list[Arrival],
    aborts: list[Abort],
    step: int,
    now_s: float,
    later_s: float = 0.0,
) -> None:
    """Submit and cancel what is known when a step is decided.

    ``later_s``: who comes for the next decision has come later than those for this one.
    """
    while arrivals and arrivals[0].step <= step:
        core.submit(_request(arrivals.pop(0)), now_s + later_s)
    while aborts and aborts[0].step <= step:
        core.cancel(aborts.pop(0).id, now_s)


def _request(arrival: Arrival) -> CoreRequest:
    stops = arrival.stop_after is not None and arrival.stop_after <= arrival.max_tokens
    return CoreRequest(
        arrival.id,
        sum(length for _, length in arrival.prompt),
        (arrival.stop_after or arrival.max_tokens) if stops else arrival.max_tokens,
        reason=FinishReason.STOP if stops else FinishReason.LENGTH,
        tokens=SegmentTokens(arrival.prompt),
        allowed_tokens=arrival.max_tokens,
        priority=arrival.priority,
    )


def _decided(core: EngineCore, number: int) -> Step:
    """Start a step: how things stand when it has been decided."""
    outputs = core.advance(number * _STEP_S)
    if core.plan is None and not outputs:
        return Step(step=number, idle=True)
    return _seen(core, number, core.plan, outputs)


def _step(core: EngineCore, number: int) -> Step:
    """Run one step from its start to its end."""
    core.advance(number * _STEP_S)
    plan = core.plan
    if plan is None:
        return Step(step=number, idle=True)
    scheduled = dict(core.scheduled)
    outputs = core.settle((number + 1) * _STEP_S)
    step = _seen(core, number, plan, outputs)
    step.scheduled = scheduled
    return step


def _seen(core: EngineCore, number: int, plan: Plan | None, outputs: Seq[Output]) -> Step:
    return Step(
        step=number,
        scheduled=dict(core.scheduled),
        new_cached={} if plan is None else {one.id: tokens for one, tokens in plan.started},
        preempted=[] if plan is None else [sequence.id for sequence in plan.preempted],
        running=core.running,
        waiting=core.waiting,
        kv_usage=core.kv_usage,
        finished=[
            finish.id
            for output in outputs
            for finish in output.finished
            if finish.reason is not FinishReason.ABORT
        ],
    )
