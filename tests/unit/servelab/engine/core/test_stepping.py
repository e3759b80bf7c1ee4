"""The engine core against its laws: nothing lost, nothing leaked, the same for the same seed."""

import dataclasses
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api.spec import BatchingMode
from modelserve.errors import InputError
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.intake import QueueFull, TooLarge
from servelab.engine.core.sequences import CoreRequest, Finish, FinishReason, Output
from servelab.engine.core.stepping import EngineCore

SMALL = CoreConfig(
    max_sequences=4, max_batched_tokens=64, max_model_tokens=256, kv_blocks=40, block_size=16
)


@dataclass(frozen=True, slots=True)
class LinearLaw:
    """A step takes 10 ms, and 1 ms for each decoding sequence, 0.1 ms for each prompt token."""

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        return 0.01 + 0.001 * decode_sequences + 0.0001 * prefill_tokens + 1e-7 * context_tokens


def core(config: CoreConfig = SMALL, seed: int = 0, *, jumps: bool = True) -> EngineCore:
    return EngineCore(config, LinearLaw(), random.Random(seed), jumps=jumps)


def request(name: str, prompt: int = 20, tokens: int = 5) -> CoreRequest:
    return CoreRequest(name, prompt, tokens)


def run_out(engine: EngineCore) -> list[Output]:
    """Wake the core until nothing is left to do."""
    outputs: list[Output] = []
    while (wake_s := engine.next_wake()) is not None:
        outputs += engine.advance(wake_s)
    return outputs


def tokens_by_id(outputs: list[Output]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for output in outputs:
        for name in output.ids:
            times.setdefault(name, []).extend(output.times_s)
    return times


def finishes(outputs: list[Output]) -> dict[str, Finish]:
    return {finish.id: finish for output in outputs for finish in output.finished}


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids of an endless text."""

    number: int

    def ids(self, first: int, count: int) -> list[int]:
        return [self.number] * count


@dataclass(frozen=True, slots=True)
class Arrival:
    at_s: float
    prompt: int
    tokens: int
    cancel_after_s: float | None
    text: int = 0

    def request(self, name: str) -> CoreRequest:
        return CoreRequest(name, self.prompt, self.tokens, tokens=Text(self.text))


ARRIVALS = st.lists(
    st.builds(
        Arrival,
        at_s=st.floats(0, 1),
        prompt=st.integers(1, 200),
        tokens=st.integers(1, 56),
        cancel_after_s=st.none() | st.floats(0, 1),
        text=st.integers(0, 2),
    ),
    max_size=25,
)
CONFIGS = st.builds(
    CoreConfig,
    max_sequences=st.integers(1, 8),
    max_batched_tokens=st.integers(1, 128),
    max_model_tokens=st.just(256),
    kv_blocks=st.integers(16, 40),
    block_size=st.just(16),
    batching=st.sampled_from(BatchingMode),
    jitter=st.sampled_from([0.0, 0.1]),
    front_s=st.sampled_from([0.0, 0.005]),
    prefix_caching=st.booleans(),
    long_prefill_tokens=st.sampled_from([0, 20]),
)


def play(engine: EngineCore, arrivals: list[Arrival]) -> list[Output]:
    """Submit, cancel and wake in order of time, checking bounds on the way."""
    events = [(item.at_s, 0, number, item) for number, item in enumerate(arrivals)]
    events += [
        (item.at_s + item.cancel_after_s, 1, number, item)
        for number, item in enumerate(arrivals)
        if item.cancel_after_s is not None
    ]
    outputs: list[Output] = []
    for at_s, kind, number, item in sorted(events, key=lambda event: event[:3]):
        while (wake_s := engine.next_wake()) is not None and wake_s < at_s:
            outputs += engine.advance(wake_s)
            assert engine.running <= engine.config.slots
            assert 0 <= engine.kv_usage <= 1
        if kind == 0:
            engine.submit(item.request(str(number)), at_s)
        else:
            engine.cancel(str(number), at_s)
    return outputs + run_out(engine)


@settings(max_examples=150, deadline=None)
@given(config=CONFIGS, arrivals=ARRIVALS)
def test_every_request_gets_its_tokens_or_is_cancelled_and_no_block_leaks(
    config: CoreConfig, arrivals: list[Arrival]
) -> None:
    engine = core(config)
    outputs = play(engine, arrivals)
    times, ends = tokens_by_id(outputs), finishes(outputs)
    assert set(ends) == {str(number) for number in range(len(arrivals))}
    assert (engine.idle, engine.running, engine.waiting, engine.kv_usage) == (True, 0, 0, 0.0)
    for number, item in enumerate(arrivals):
        seen, end = times.get(str(number), []), ends[str(number)]
        assert seen == sorted(set(seen))
        assert end.output_tokens == len(seen)
        assert end.reason == FinishReason.ABORT or len(seen) == item.tokens
        assert end.reason != FinishReason.ABORT or item.cancel_after_s is not None


@settings(max_examples=50, deadline=None)
@given(config=CONFIGS, arrivals=ARRIVALS)
def test_the_same_seed_gives_the_same_outputs(config: CoreConfig, arrivals: list[Arrival]) -> None:
    assert play(core(config, seed=7), arrivals) == play(core(config, seed=7), arrivals)


@settings(max_examples=50, deadline=None)
@given(config=CONFIGS, arrivals=ARRIVALS, pause_s=st.floats(0.001, 0.5))
def test_waking_late_changes_no_time(
    config: CoreConfig, arrivals: list[Arrival], pause_s: float
) -> None:
    punctual, lazy = core(config), core(config)
    ordered = sorted(enumerate(arrivals), key=lambda pair: pair[1].at_s)
    for number, item in ordered:
        lazy.submit(item.request(str(number)), item.at_s)
    late: list[Output] = []
    while (wake_s := lazy.next_wake()) is not None:
        late += lazy.advance(wake_s + pause_s)
    uncancelled = [dataclasses.replace(item, cancel_after_s=None) for item in arrivals]
    assert tokens_by_id(late) == tokens_by_id(play(punctual, uncancelled))


@settings(max_examples=150, deadline=None)
@given(config=CONFIGS, arrivals=ARRIVALS, looks_s=st.lists(st.floats(0, 2), max_size=12))
def test_a_core_that_jumps_gives_the_same_tokens_at_the_same_times_as_one_that_steps(
    config: CoreConfig, arrivals: list[Arrival], looks_s: list[float]
) -> None:
    jumping, stepping = (core(config, jumps=jumps) for jumps in (True, False))
    jumped, stepped = (look(engine, arrivals, looks_s) for engine in (jumping, stepping))
    assert tokens_by_id(jumped) == tokens_by_id(stepped)
    assert finishes(jumped) == finishes(stepped)
    assert jumping.prefix_tokens == stepping.prefix_tokens


def look(engine: EngineCore, arrivals: list[Arrival], looks_s: list[float]) -> list[Output]:
    """Advance at these times only, and once at the very end."""
    outputs: list[Output] = []
    submits = [(item.at_s, 0, number) for number, item in enumerate(arrivals)]
    for at_s, kind, number in sorted([*submits, *((at_s, 1, 0) for at_s in looks_s)]):
        if kind == 0:
            engine.submit(arrivals[number].request(str(number)), at_s)
        else:
            outputs += engine.advance(at_s)
    return outputs + engine.advance(1e6)


def test_the_first_token_comes_at_the_end_of_the_step_that_computes_the_prompt() -> None:
    engine = core()
    engine.submit(request("a", prompt=20, tokens=2), 1.0)
    times = tokens_by_id(run_out(engine))
    assert times["a"] == pytest.approx([1.012, 1.012 + 0.011 + 21e-7])


def test_a_long_prompt_is_computed_in_chunks_of_the_token_budget() -> None:
    engine = core()
    engine.submit(request("a", prompt=150, tokens=1), 0.0)
    assert [output.prefill_tokens for output in run_out(engine)] == [64, 64, 22]


def test_a_request_that_comes_during_a_step_starts_with_the_next_one() -> None:
    engine = core()
    engine.submit(request("a"), 0.0)
    engine.advance(0.0)
    engine.submit(request("b"), 0.001)
    ends = finishes(run_out(engine))
    assert ends["b"].scheduled_s == ends["a"].first_token_s


def test_requests_of_the_same_moment_share_a_step() -> None:
    engine = core()
    for name in "abc":
        engine.submit(request(name, tokens=1), 0.0)
    assert run_out(engine)[0].ids == ("a", "b", "c")


def test_the_last_of_the_running_is_preempted_and_gets_all_its_tokens_later() -> None:
    engine = core(CoreConfig(4, 64, 256, kv_blocks=5))
    for name in "ab":
        engine.submit(request(name, prompt=30, tokens=20), 0.0)
    outputs = run_out(engine)
    assert [name for output in outputs for name in output.preempted] == ["b"]
    assert {name: len(times) for name, times in tokens_by_id(outputs).items()} == {"a": 20, "b": 20}


def test_a_cancelled_request_frees_its_slot_at_the_next_step() -> None:
    engine = core(CoreConfig(1, 64, 256, kv_blocks=40))
    engine.submit(request("a", tokens=200), 0.0)
    engine.submit(request("b", tokens=1), 0.0)
    engine.advance(0.05)
    engine.cancel("a", 0.05)
    ends = finishes(run_out(engine))
    assert ends["a"].reason == FinishReason.ABORT
    assert ends["b"].at_s < 0.08


def test_a_cancelled_request_keeps_its_blocks_to_the_end_of_the_step() -> None:
    engine = core()
    for name in "ab":
        engine.submit(request(name, prompt=20, tokens=200), 0.0)
    engine.advance(0.05)
    engine.cancel("a", 0.05)
    assert engine.kv_usage == 4 / 40
    engine.settle(0.06)
    assert engine.kv_usage == 2 / 40


def test_an_answer_ends_at_the_model_length_with_reason_length() -> None:
    engine = core()
    engine.submit(CoreRequest("a", 250, 100, FinishReason.STOP), 0.0)
    end = finishes(run_out(engine))["a"]
    assert (end.output_tokens, end.reason) == (6, FinishReason.LENGTH)


def test_a_full_queue_refuses() -> None:
    engine = core(CoreConfig(1, 64, 256, kv_blocks=40, queue_limit=1))
    engine.submit(request("a"), 0.0)
    engine.submit(request("b"), 0.0)
    with pytest.raises(QueueFull):
        engine.submit(request("c"), 0.0)


def test_a_request_larger_than_the_cache_is_refused_and_blocks_nobody() -> None:
    engine = core(CoreConfig(4, 64, 256, kv_blocks=4))
    with pytest.raises(TooLarge, match="holds 64"):
        engine.submit(request("a", prompt=60, tokens=30), 0.0)
    engine.submit(request("b"), 0.0)
    assert len(tokens_by_id(run_out(engine))["b"]) == 5


def test_an_id_in_use_is_refused() -> None:
    engine = core()
    engine.submit(request("a"), 0.0)
    with pytest.raises(InputError, match="in use"):
        engine.submit(request("a"), 0.0)


def test_batching_none_serves_one_at_a_time() -> None:
    engine = core(CoreConfig(4, 64, 256, 40, batching=BatchingMode.NONE))
    for name in "ab":
        engine.submit(request(name), 0.0)
    ends = finishes(run_out(engine))
    assert ends["b"].scheduled_s == ends["a"].at_s


def test_a_static_batch_runs_to_completion_before_the_next_starts() -> None:
    engine = core(CoreConfig(2, 64, 256, 40, batching=BatchingMode.STATIC))
    for name, tokens in (("a", 2), ("b", 9), ("c", 2)):
        engine.submit(request(name, tokens=tokens), 0.0)
    ends = finishes(run_out(engine))
    assert ends["c"].scheduled_s == ends["b"].at_s


def test_a_dynamic_batch_gathers_until_it_is_full_or_its_delay_is_over() -> None:
    config = CoreConfig(2, 64, 256, 40, batching=BatchingMode.DYNAMIC, gather_s=0.5)
    engine = core(config)
    engine.submit(request("a"), 0.0)
    assert engine.next_wake() == 0.5
    engine.submit(request("b"), 0.1)
    assert engine.next_wake() == 0.1


def test_a_prompt_seen_before_is_found_and_counted() -> None:
    engine = core(dataclasses.replace(SMALL, prefix_caching=True))
    for name in "ab":
        engine.submit(CoreRequest(name, 40, 2, tokens=Text(1)), 0.0)
    outputs = run_out(engine)
    assert engine.prefix_tokens == (80, 32)
    assert [first.cached_tokens for output in outputs for first in output.firsts] == [0, 32]
    assert {name: end.cached_tokens for name, end in finishes(outputs).items()} == {"a": 0, "b": 32}


def test_requests_without_token_ids_share_nothing() -> None:
    engine = core(dataclasses.replace(SMALL, prefix_caching=True))
    for name in "ab":
        engine.submit(request(name, prompt=40), 0.0)
    run_out(engine)
    assert engine.prefix_tokens == (80, 0)


def test_settling_ends_a_step_and_starts_none() -> None:
    engine = core()
    engine.submit(request("a", prompt=20, tokens=3), 0.0)
    engine.advance(0.0)
    assert engine.plan is not None
    end_s = engine.next_wake()
    assert end_s is not None
    assert [output.ids for output in engine.settle(end_s)] == [("a",)]
    assert engine.plan is None
