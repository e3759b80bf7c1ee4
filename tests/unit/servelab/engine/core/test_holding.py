"""A core that is held: nothing starts or ends, and all goes on as it was, so much later."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, Finish
from servelab.engine.core.stepping import EngineCore

STEP_S = 0.01


class Same:
    """Tokens that are all alike."""

    def ids(self, first: int, count: int) -> list[int]:
        return [7] * count


def core(policy: Policy = Policy.SGLANG, *, caches: bool = False) -> EngineCore:
    config = CoreConfig(4, 64, 512, kv_blocks=64, policy=policy, prefix_caching=caches)
    return EngineCore(config, SteadyLaw(STEP_S), random.Random(0))


def ends(engine: EngineCore, from_s: float) -> list[Finish]:
    """How all that is there ends."""
    found = [end for output in engine.advance(from_s) for end in output.finished]
    while (wake_s := engine.next_wake()) is not None:
        found += [end for output in engine.advance(wake_s) for end in output.finished]
    return found


@given(
    held_s=st.floats(0.0, 0.5), pause_s=st.floats(0.0, 5.0), policy=st.sampled_from(list(Policy))
)
def test_what_is_held_ends_as_much_later_as_it_was_held(
    held_s: float, pause_s: float, policy: Policy
) -> None:
    plain, paused = core(policy), core(policy)
    for engine in (plain, paused):
        for name in ("a", "b", "c", "d", "e"):
            engine.submit(CoreRequest(name, 30, 20), 0.0)
        engine.advance(0.0)
    told = [end for output in paused.advance(held_s) for end in output.finished]
    paused.hold(held_s)
    assert paused.advance(held_s + pause_s) == []
    paused.release(held_s + pause_s)
    told += ends(paused, held_s + pause_s)
    for late, early in zip(told, ends(plain, 0.0), strict=True):
        delay_s = pause_s if early.at_s > held_s else 0.0
        assert late.id == early.id
        assert late.at_s == pytest.approx(early.at_s + delay_s)


def test_a_held_core_wants_no_turn() -> None:
    engine = core()
    engine.submit(CoreRequest("a", 8, 8), 0.0)
    engine.advance(0.0)
    engine.hold(0.005)
    assert engine.next_wake() is None
    engine.release(0.5)
    assert engine.next_wake() == pytest.approx(0.505)


def test_what_comes_while_it_is_held_starts_after_it() -> None:
    engine = core()
    engine.hold(0.0)
    engine.submit(CoreRequest("a", 8, 1), 1.0)
    assert (engine.advance(3.0), engine.waiting) == ([], 1)
    engine.release(4.0)
    assert ends(engine, 4.0)[0].at_s == pytest.approx(4.0 + STEP_S)


@pytest.mark.parametrize("held_before", [False, True])
def test_all_that_run_queue_up_again_with_what_they_have(held_before: bool) -> None:
    engine = core()
    for name in ("a", "b"):
        engine.submit(CoreRequest(name, 8, 9), 0.0)
    engine.advance(0.035)
    if held_before:
        engine.hold(0.035)
    engine.hold(0.035, requeue=True)
    assert (engine.running, engine.waiting, engine.kv_usage) == (0, 2, 0.0)
    engine.release(1.0)
    found = ends(engine, 1.0)
    assert [(end.output_tokens, end.preemptions) for end in found] == [(9, 1), (9, 1)]
    assert found[0].first_token_s == pytest.approx(STEP_S)


def test_what_is_cancelled_while_it_is_held_ends_then() -> None:
    engine = core()
    engine.submit(CoreRequest("a", 8, 9), 0.0)
    engine.advance(0.035)
    engine.hold(0.035)
    engine.cancel("a", 0.1)
    assert [end.id for output in engine.advance(0.1) for end in output.finished] == ["a"]


def test_a_cache_is_emptied_only_when_nothing_runs() -> None:
    engine = core(caches=True)
    engine.submit(CoreRequest("a", 64, 9, tokens=Same()), 0.0)
    engine.advance(0.0)
    assert not engine.forget(0.0)
    ends(engine, 0.0)
    assert engine.forget(1.0)
    engine.submit(CoreRequest("b", 64, 9, tokens=Same()), 1.0)
    assert ends(engine, 1.0)[0].cached_tokens == 0


def test_a_cache_is_emptied_though_some_wait_for_the_end_of_a_pause() -> None:
    engine = core(caches=True)
    engine.submit(CoreRequest("a", 64, 9), 0.0)
    engine.advance(0.055)
    engine.hold(0.055, requeue=True)
    assert engine.forget(0.06)
    engine.release(1.0)
    assert [end.output_tokens for end in ends(engine, 1.0)] == [9]
    assert engine.kv_usage == 0.0


def test_nothing_is_released_that_is_not_held() -> None:
    engine = core()
    engine.release(1.0)
    engine.submit(CoreRequest("a", 8, 1), 0.0)
    assert ends(engine, 0.0)[0].at_s == pytest.approx(STEP_S)
