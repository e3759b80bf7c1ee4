"""An order by priority: who starts first, and who gives way."""

import dataclasses
import random

import pytest

from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, Output
from servelab.engine.core.stepping import EngineCore

# A step takes a second; 4 blocks of 10 tokens.
ONE_AT_A_TIME = CoreConfig(1, 50, 40, kv_blocks=4, block_size=10, by_priority=True)
SHORT_OF_BLOCKS = dataclasses.replace(ONE_AT_A_TIME, max_sequences=3)


def core(config: CoreConfig) -> EngineCore:
    return EngineCore(config, SteadyLaw(1.0), random.Random(0))


def request(name: str, priority: int, tokens: int = 2) -> CoreRequest:
    return CoreRequest(name, 5, tokens, priority=priority)


def started(outputs: list[Output]) -> list[str]:
    """In order."""
    ends = [end for output in outputs for end in output.finished]
    return [end.id for end in sorted(ends, key=lambda end: end.scheduled_s or 0.0)]


def three(config: CoreConfig) -> list[str]:
    engine = core(config)
    for name, priority in (("first", 5), ("later", 5), ("urgent", -1)):
        engine.submit(request(name, priority), 0.0 if name == "first" else 0.5)
        engine.settle(0.5)
    return started(engine.advance(100.0))


@pytest.mark.parametrize("policy", [Policy.VLLM, Policy.SGLANG])
def test_the_lowest_number_starts_first_and_of_equals_who_came_first(policy: Policy) -> None:
    config = dataclasses.replace(ONE_AT_A_TIME, policy=policy)
    assert three(config) == ["first", "urgent", "later"]


def test_without_that_order_who_came_first_starts_first() -> None:
    assert three(dataclasses.replace(ONE_AT_A_TIME, by_priority=False)) == [
        *("first", "later", "urgent")
    ]


def test_one_who_may_not_start_yet_does_not_keep_the_others_waiting() -> None:
    engine = core(dataclasses.replace(ONE_AT_A_TIME, front_s=0.5))
    engine.submit(request("early", 5), 0.0)
    engine.submit(request("urgent", -1), 0.4)
    assert started(engine.advance(100.0)) == ["early", "urgent"]


def test_the_last_in_that_order_gives_its_blocks_to_the_others_wherever_it_runs() -> None:
    engine = core(SHORT_OF_BLOCKS)
    for name, priority in (("least", 9), ("a", 1), ("b", 1)):
        engine.submit(request(name, priority, 20), 0.0)
    outputs = engine.advance(100.0)
    assert next(name for output in outputs for name in output.preempted) == "least"
    assert engine.kv_usage == 0.0


def test_who_gives_way_after_it_was_served_in_the_same_step_gets_no_token_in_it() -> None:
    # Blocks of one token: the first takes the last one that is free, and then loses all.
    config = dataclasses.replace(SHORT_OF_BLOCKS, kv_blocks=41, block_size=1)
    engine = core(config)
    for name, priority in (("least", 9), ("a", 1)):
        engine.submit(request(name, priority, 30), 0.0)
    outputs = engine.advance(100.0)
    (at,) = [at for at, output in enumerate(outputs) if output.preempted]
    assert outputs[at].ids == ("a",)
    assert {end.output_tokens for output in outputs for end in output.finished} == {30}


# One slot; who is more than 10 behind makes way.
MAKES_WAY = dataclasses.replace(ONE_AT_A_TIME, policy=Policy.SGLANG, priority_gap=10, kv_blocks=20)


def stopped(config: CoreConfig, behind: int, tokens: int = 2) -> list[str]:
    """Who is stopped when a request comes before which another runs that is so far behind."""
    engine = core(config)
    engine.submit(request("runs", behind, 20), 0.0)
    engine.settle(3.5)
    engine.submit(request("urgent", 0, tokens), 3.5)
    return [name for output in engine.advance(100.0) for name in output.preempted]


def test_sglang_stops_one_who_is_far_enough_behind_for_one_without_a_slot() -> None:
    assert (stopped(MAKES_WAY, 11), stopped(MAKES_WAY, 10)) == (["runs"], [])


def test_sglang_stops_nobody_if_it_is_told_not_to() -> None:
    assert stopped(dataclasses.replace(MAKES_WAY, priority_gap=None), 99) == []


def test_sglang_stops_nobody_for_one_who_would_not_fit_even_then() -> None:
    short = dataclasses.replace(MAKES_WAY, kv_blocks=3)
    assert (stopped(short, 11, 15), stopped(short, 11, 25)) == (["runs"], [])


def test_who_was_stopped_goes_on_where_it_was_and_loses_no_token() -> None:
    engine = core(MAKES_WAY)
    engine.submit(request("runs", 50, 20), 0.0)
    engine.settle(3.5)
    engine.submit(request("urgent", 0), 3.5)
    outputs = engine.advance(100.0)
    assert {end.id: end.output_tokens for output in outputs for end in output.finished} == {
        "runs": 20,
        "urgent": 2,
    }
