"""When the scheduler hears of a cancelled request, and its blocks are free."""

import dataclasses
import random

import pytest

from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, FinishReason, Output
from servelab.engine.core.stepping import EngineCore

LAG = CoreConfig(2, 64, 256, 40, lag=True)
AT_ONCE = dataclasses.replace(LAG, lag=False)


def core(config: CoreConfig) -> EngineCore:
    """Two run, a third waits for a slot; the step that began at 3 is under way."""
    engine = EngineCore(config, SteadyLaw(1.0), random.Random(0))
    for name in ("a", "b", "c"):
        engine.submit(CoreRequest(name, 20, 50), 0.0)
    engine.advance(3.5)
    return engine


def first_s(outputs: list[Output], name: str) -> float:
    return next(first.at_s for output in outputs for first in output.firsts if first.id == name)


@pytest.mark.parametrize(("config", "at_s"), [(AT_ONCE, 5.0), (LAG, 6.0)])
def test_where_decisions_lag_the_slot_of_a_cancelled_one_is_free_a_step_later(
    config: CoreConfig, at_s: float
) -> None:
    engine = core(config)
    engine.cancel("a", 3.5)
    assert first_s(engine.advance(100.0), "c") == at_s


def test_it_has_ended_for_the_client_at_once() -> None:
    engine = core(LAG)
    engine.cancel("a", 3.5)
    assert (engine.running, engine.waiting) == (1, 1)
    (output,) = engine.advance(3.6)
    assert (output.finished[0].reason, output.finished[0].output_tokens) == (FinishReason.ABORT, 3)
    assert all("a" not in output.ids for output in engine.advance(100.0))


def test_the_step_that_was_decided_computes_its_token_in_vain() -> None:
    engine = core(LAG)
    engine.cancel("a", 3.5)
    used = engine.kv_usage
    engine.advance(4.5)
    assert engine.scheduled == [("a", 1), ("b", 1)]
    assert engine.kv_usage == used / 2


def test_a_cancel_at_a_steps_start_is_known_when_the_next_is_decided() -> None:
    engine = core(LAG)
    engine.advance(4.0)
    engine.cancel("a", 4.0)
    assert first_s(engine.advance(100.0), "c") == 6.0


def test_one_of_the_same_name_may_come_while_the_first_still_leaves() -> None:
    engine = core(LAG)
    engine.cancel("a", 3.5)
    engine.submit(CoreRequest("a", 20, 2), 3.5)
    outputs = engine.advance(100.0)
    (end,) = [end for output in outputs for end in output.finished if end.arrived_s == 3.5]
    assert (end.id, end.output_tokens, engine.kv_usage) == ("a", 2, 0.0)


def test_when_all_are_cancelled_the_engine_is_idle_after_the_decided_step() -> None:
    engine = core(LAG)
    for name in ("a", "b", "c"):
        engine.cancel(name, 3.5)
    engine.advance(100.0)
    assert (engine.idle, engine.kv_usage, engine.next_wake()) == (True, 0.0, None)


def test_what_is_cancelled_while_nothing_is_computed_is_gone_at_once() -> None:
    engine = core(LAG)
    engine.hold(4.0)
    for name in ("a", "b", "c"):
        engine.cancel(name, 9.0)
    assert (engine.idle, engine.kv_usage) == (True, 0.0)
