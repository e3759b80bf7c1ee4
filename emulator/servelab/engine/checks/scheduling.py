"""Replays a recording of vLLM's own scheduler through our core, and tells where they differ.

A recording is a list of cases, each a configuration, the requests with the step at which they come,
aborts, and what the scheduler decided at each step.
"""

import random
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Annotated

import pydantic

from servelab.engine.core import laws
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.sequences import CoreRequest, FinishReason
from servelab.engine.core.stepping import EngineCore

_STEP_S = 1.0
_USAGE_DIGITS = 6
_ANSWER_ID = -1  # the token of all answers

Count = Annotated[int, pydantic.Field(ge=1)]
Segment = tuple[int, Annotated[int, pydantic.Field(ge=0)]]


class Limits(pydantic.BaseModel):
    """A recorded configuration; one of the blocks is vLLM's null block."""

    max_num_seqs: Count
    max_num_batched_tokens: Count
    max_model_len: Count
    num_gpu_blocks: Annotated[int, pydantic.Field(ge=2)]
    block_size: Count = 16
    prefix_caching: bool = False
    long_prefill_token_threshold: Annotated[int, pydantic.Field(ge=0)] | None = 0

    def core_config(self) -> CoreConfig:
        """The same limits for our core."""
        return CoreConfig(
            max_sequences=self.max_num_seqs,
            max_batched_tokens=self.max_num_batched_tokens,
            max_model_tokens=self.max_model_len,
            kv_blocks=self.num_gpu_blocks - 1,
            block_size=self.block_size,
            prefix_caching=self.prefix_caching,
            long_prefill_tokens=self.long_prefill_token_threshold or 0,
            refuse_oversized=False,
        )


class Arrival(pydantic.BaseModel):
    """A request; its prompt is made of segments of a seed and a length."""

    id: str
    step: int
    prompt: Annotated[list[Segment], pydantic.Field(min_length=1)]
    max_tokens: Count


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
    core = EngineCore(
        case.config.core_config(), laws.SteadyLaw(_STEP_S), random.Random(0), jumps=False
    )
    arrivals = sorted(case.requests, key=lambda arrival: arrival.step)
    aborts = sorted(case.aborts, key=lambda abort: abort.step)
    steps: list[Step] = []
    for real in case.steps:
        now_s = real.step * _STEP_S
        while arrivals and arrivals[0].step <= real.step:
            core.submit(_request(arrivals.pop(0)), now_s)
        while aborts and aborts[0].step <= real.step:
            core.cancel(aborts.pop(0).id, now_s)
        steps.append(_step(core, real.step))
    return steps


def _request(arrival: Arrival) -> CoreRequest:
    return CoreRequest(
        arrival.id,
        sum(length for _, length in arrival.prompt),
        arrival.max_tokens,
        tokens=SegmentTokens(arrival.prompt),
    )


def _step(core: EngineCore, number: int) -> Step:
    """Run one step from its start to its end."""
    core.advance(number * _STEP_S)
    plan = core.plan
    if plan is None:
        return Step(step=number, idle=True)
    scheduled = dict(core.scheduled)
    outputs = core.settle((number + 1) * _STEP_S)
    return Step(
        step=number,
        scheduled=scheduled,
        new_cached={sequence.id: tokens for sequence, tokens in plan.started},
        preempted=[sequence.id for sequence in plan.preempted],
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
