"""The core against a second one that looks at every sequence and every block in every step."""

import dataclasses
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api.spec import BatchingMode
from servelab.engine.checks.plaincore import PlainCore
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.sequences import CoreRequest, FinishReason, Output
from servelab.engine.core.stepping import EngineCore

JITTER_SEED = 3


@dataclass(frozen=True, slots=True)
class Law:
    """Every argument counts, so that a wrong one shows."""

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        return (
            0.01
            + 0.001 * decode_sequences
            + 1e-6 * context_tokens
            + 1e-4 * prefill_tokens
            + 1e-7 * prefill_context_tokens
            + 1e-5 * prefill_sequences
        )


@dataclass(frozen=True, slots=True)
class SumLaw(Law):
    """The same law, but for a least, which tells that decoding is such a sum."""

    least_s: float = 0.0

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        seconds = Law.step_s(
            *(self, decode_sequences, context_tokens, prefill_tokens),
            *(prefill_context_tokens, prefill_sequences),
        )
        return seconds if prefill_tokens else max(self.least_s, seconds)

    def decode_terms(self, decode_sequences: int) -> tuple[float, float, float]:
        return 0.01 + 0.001 * decode_sequences + 1e-5, 1e-6, self.least_s


@dataclass(frozen=True, slots=True)
class UntoldLaw:
    """A law of which only the seconds are known."""

    inner: SumLaw

    def step_s(self, *numbers: int) -> float:
        return self.inner.step_s(*numbers)


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids: some equal ones, then the text's own."""

    shared: int
    own: int

    def ids(self, first: int, count: int) -> list[int]:
        return [0 if at < self.shared else self.own for at in range(first, first + count)]


def by_step(outputs: list[Output]) -> list[Output]:
    """Each step by itself; rows of equal steps taken apart."""
    steps: list[Output] = []
    for output in outputs:
        last = len(output.times_s) - 1
        if last < 1:
            steps.append(output)
            continue
        for at, time_s in enumerate(output.times_s):
            firsts = output.firsts if at == 0 else ()
            finished = output.finished if at == last else ()
            steps.append(output._replace(times_s=(time_s,), firsts=firsts, finished=finished))
    return steps


@dataclass(frozen=True, slots=True)
class Event:
    """At a time: a request comes, one is cancelled, or somebody looks."""

    at_s: float
    request: CoreRequest | None = None
    cancel: str | None = None


def events_of(seed: int) -> list[Event]:
    """Bursts of requests, some of which are cancelled, and looks now and then."""
    rng = random.Random(seed)
    count, length_s = rng.randint(1, 30), rng.choice([0.0, 0.3, 2.0])
    longest = rng.choice([3, 60]), rng.choice([3, 90])
    events: list[Event] = []
    for number in range(count):
        at_s = rng.uniform(0, length_s) if rng.random() < 0.6 else 0.0
        tokens = None if rng.random() < 0.2 else Text(rng.randint(0, 50), rng.randint(1, 3))
        prompt, answer = rng.randint(1, longest[0]), rng.randint(1, longest[1])
        reason = rng.choice([FinishReason.STOP, FinishReason.LENGTH])
        priority = rng.choice([0, 0, 1, -1])
        fixed = rng.random() < 0.3
        request = CoreRequest(f"r{number}", prompt, answer, reason, tokens, 0, priority, fixed)
        events.append(Event(at_s, request))
        if rng.random() < 0.15:
            events.append(Event(at_s + rng.uniform(0, 0.5), cancel=f"r{number}"))
        if rng.random() < 0.3:
            events.append(Event(rng.uniform(0, length_s + 1)))
    return events


EVENTS = st.integers(0, 2**32).map(events_of)
CONFIGS = st.builds(
    CoreConfig,
    max_sequences=st.sampled_from([1, 2, 5, 12]),
    max_batched_tokens=st.sampled_from([1, 3, 16, 24, 40, 128]),
    max_model_tokens=st.just(100),
    kv_blocks=st.sampled_from([1, 1, 3, 20]),
    block_size=st.sampled_from([8, 16, 5]),
    batching=st.sampled_from([BatchingMode.CONTINUOUS] * 3 + list(BatchingMode)),
    jitter=st.sampled_from([0.0, 0.1]),
    front_s=st.sampled_from([0.0, 0.005, 0.04]),
    prefix_caching=st.booleans(),
    long_prefill_tokens=st.sampled_from([0, 7, 20]),
    fair_prefills=st.booleans(),
    reserve_prompts=st.sampled_from([True, True, False]),
    spare_blocks=st.sampled_from([0, 0, 1, 6]),
    refuse_oversized=st.just(True),
)
TABLES: list[tuple[int | None, ...]] = [(None,), (20, None), (7, 7, None), (30,), (None, 1)]


def roomy(config: CoreConfig) -> CoreConfig:
    """With blocks for the longest request and so many more, which are few."""
    least = -(-config.max_model_tokens // config.block_size)
    return dataclasses.replace(config, kv_blocks=least + config.kv_blocks)


def outcome(core: EngineCore | PlainCore, events: list[Event]) -> tuple[list[Output], list[object]]:
    """All steps, and what could be seen of the state at each event."""
    seen: list[object] = []
    outputs: list[Output] = []
    for event in sorted(events, key=lambda each: each.at_s):
        if event.request is not None:
            core.submit(event.request, event.at_s)
        elif event.cancel is not None:
            core.cancel(event.cancel, event.at_s)
        elif isinstance(core, PlainCore):
            core.run(event.at_s)
        else:
            outputs += core.advance(event.at_s)
        if isinstance(core, PlainCore):
            free, counts = len(core.free), (len(core.running), len(core.waiting))
            seen.append(
                (
                    *counts,
                    (core.config.kv_blocks - free) / core.config.kv_blocks,
                    core.prefix_tokens,
                )
            )
        else:
            seen.append((core.running, core.waiting, core.kv_usage, core.prefix_tokens))
    if isinstance(core, PlainCore):
        core.run(1e6)
        return core.outputs, seen
    return outputs + core.advance(1e6), seen


@settings(max_examples=400, deadline=None)
@given(config=CONFIGS, events=EVENTS, jumps=st.booleans())
def test_counting_and_jumping_give_what_a_look_at_everything_gives(
    config: CoreConfig, events: list[Event], jumps: bool
) -> None:
    config = roomy(config)
    core = EngineCore(config, Law(), random.Random(JITTER_SEED), jumps=jumps)
    plain = PlainCore(config, Law(), random.Random(JITTER_SEED))
    (outputs, seen), (expected, expected_seen) = outcome(core, events), outcome(plain, events)
    assert by_step(outputs) == expected
    assert seen == expected_seen


@st.composite
def any_policy(draw: st.DrawFn) -> CoreConfig:
    """A configuration of any engine; prompts that are not divided fit a step."""
    config = roomy(draw(CONFIGS))
    policy, chunks = draw(st.sampled_from(Policy)), draw(st.booleans())
    budget = config.max_batched_tokens if chunks else 64
    mixes = draw(st.booleans())
    vllm = policy is Policy.VLLM
    tables = draw(st.sampled_from(TABLES)) if vllm else TABLES[0]
    lag = vllm and config.batching is BatchingMode.CONTINUOUS and draw(st.booleans())
    by_priority = draw(st.booleans())
    pools = [None] if vllm else [None, (20, 60), (7, 30)]
    config = dataclasses.replace(
        config,
        policy=policy,
        chunked_prefill=chunks,
        mixed_chunk=mixes,
        max_batched_tokens=budget,
        tables=tables,
        lag=lag,
        prefill_interval=draw(st.sampled_from([1, 1, 2, 5])) if vllm else 1,
        by_priority=by_priority,
        # Of equals each would take the other's blocks, for ever, as in vLLM.
        reserve_prompts=config.reserve_prompts or by_priority,
        priority_gap=draw(st.sampled_from([None, 0, 1])) if policy is Policy.SGLANG else None,
        second_pool=draw(st.sampled_from(pools)),
    )
    most = config.blocks_held(config.max_model_tokens)
    return dataclasses.replace(config, kv_blocks=max(most, config.kv_blocks))


@settings(max_examples=200, deadline=None)
@given(
    config=any_policy(),
    events=EVENTS,
    law=st.sampled_from([Law(), SumLaw(), SumLaw(0.0141)]),
)
def test_jumps_give_the_same_steps_under_every_policy(
    config: CoreConfig, events: list[Event], law: Law
) -> None:
    jumped, stepped = (
        outcome(EngineCore(config, law, random.Random(0), jumps=jumps), events)
        for jumps in (True, False)
    )
    assert by_step(jumped[0]) == stepped[0]
    assert jumped[1] == stepped[1]


@settings(max_examples=200, deadline=None)
@given(config=any_policy(), events=EVENTS)
def test_under_every_policy_all_get_their_tokens_once_and_no_block_leaks(
    config: CoreConfig, events: list[Event]
) -> None:
    core = EngineCore(config, Law(), random.Random(0))
    outputs, _ = outcome(core, events)
    requests = {event.request.id: event.request for event in events if event.request}
    seen: dict[str, int] = {}
    for output in by_step(outputs):
        for name in output.ids:
            seen[name] = seen.get(name, 0) + 1
    ends = {finish.id: finish for output in outputs for finish in output.finished}
    assert (core.idle, core.running, core.waiting, core.kv_usage) == (True, 0, 0, 0.0)
    assert set(ends) == set(requests)
    for name, end in ends.items():
        most = min(requests[name].max_tokens, config.max_model_tokens - end.prompt_tokens)
        assert end.output_tokens == seen.get(name, 0)
        assert end.reason is FinishReason.ABORT or end.output_tokens == most


@settings(max_examples=50, deadline=None)
@given(config=CONFIGS, events=EVENTS, least_s=st.sampled_from([0.0, 0.0141]))
def test_the_terms_of_a_law_are_the_law(
    config: CoreConfig, events: list[Event], least_s: float
) -> None:
    config = dataclasses.replace(roomy(config), jitter=0.0)
    submits = [event for event in events if event.request is not None]
    law = SumLaw(least_s)
    told, untold = (
        outcome(EngineCore(config, each, random.Random(0)), submits)[0]
        for each in (law, UntoldLaw(law))
    )
    assert [time_s for output in told for time_s in output.times_s] == pytest.approx(
        [time_s for output in untold for time_s in output.times_s]
    )
