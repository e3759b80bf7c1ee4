"""Decisions made while the step before is under way, as vLLM makes them by default."""

import dataclasses
import random

from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, FinishReason, Output
from servelab.engine.core.stepping import EngineCore

LAG = CoreConfig(2, 64, 256, 40, lag=True)
AT_ONCE = dataclasses.replace(LAG, lag=False)


class Counting:
    """The same text for all: 0, 1, 2, …"""

    def ids(self, first: int, count: int) -> list[int]:
        return list(range(first, first + count))


def core(config: CoreConfig) -> EngineCore:
    return EngineCore(config, SteadyLaw(1.0), random.Random(0))


def firsts(outputs: list[Output]) -> dict[str, float]:
    return {first.id: first.at_s for output in outputs for first in output.firsts}


def second(config: CoreConfig) -> float:
    """When one gets its first token who came half a step after another had started."""
    engine = core(config)
    engine.submit(CoreRequest("a", 8, 20), 0.0)
    outputs = engine.advance(0.5)
    engine.submit(CoreRequest("b", 8, 20), 0.5)
    return firsts(outputs + engine.advance(100.0))["b"]


def test_who_comes_during_a_step_waits_for_one_more() -> None:
    assert (second(AT_ONCE), second(LAG)) == (2.0, 3.0)


def test_an_idle_engine_starts_at_once() -> None:
    engine = core(LAG)
    engine.submit(CoreRequest("a", 8, 2), 5.0)
    assert firsts(engine.advance(100.0)) == {"a": 6.0}


def third(config: CoreConfig, reason: FinishReason) -> float:
    """When one gets its first token for whom there was no slot until another ended at 4."""
    engine = core(config)
    engine.submit(CoreRequest("a", 8, 4, reason, allowed_tokens=100), 0.0)
    engine.submit(CoreRequest("b", 8, 50), 0.0)
    engine.submit(CoreRequest("c", 8, 2), 0.0)
    return firsts(engine.advance(100.0))["c"]


def test_a_slot_is_free_one_step_after_an_end() -> None:
    assert (third(AT_ONCE, FinishReason.STOP), third(LAG, FinishReason.STOP)) == (5.0, 6.0)


def test_a_token_is_computed_in_vain_after_a_stop_but_not_after_the_last_one_allowed() -> None:
    plans = []
    for allowed in (100, 4):
        engine = core(LAG)
        engine.submit(CoreRequest("a", 8, 4, FinishReason.STOP, allowed_tokens=allowed), 0.0)
        engine.submit(CoreRequest("b", 8, 9), 0.0)
        engine.advance(4.5)
        plans.append(engine.scheduled)
    assert plans == [[("a", 1), ("b", 1)], [("b", 1)]]


def test_after_the_last_stop_the_engine_is_idle_a_step_later() -> None:
    engine = core(LAG)
    engine.submit(CoreRequest("a", 8, 4, FinishReason.STOP, allowed_tokens=100), 0.0)
    engine.advance(4.5)
    assert (engine.running, engine.idle) == (0, False)
    engine.advance(5.0)
    assert (engine.idle, engine.kv_usage) == (True, 0.0)


def test_who_starts_beside_a_token_computed_in_vain_finds_the_block_before_it() -> None:
    # Blocks of one token; the second asks for what the first one said, in the step after its end.
    engine = core(CoreConfig(3, 50, 40, 10, block_size=1, prefix_caching=True, lag=True))
    answers = CoreRequest("a", 3, 2, FinishReason.STOP, Counting(), allowed_tokens=10)
    engine.submit(answers, 0.0)
    engine.settle(0.5)
    engine.submit(CoreRequest("b", 6, 2, tokens=Counting()), 0.5)
    ends = [end for output in engine.settle(100.0) for end in output.finished]
    assert [(end.id, end.scheduled_s, end.cached_tokens) for end in ends] == [
        *(("a", 0.0, 0), ("b", 1.0, 4))
    ]
