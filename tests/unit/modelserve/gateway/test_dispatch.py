"""All models of a gateway: what stays of one that is deleted."""

import pytest

from modelserve.api import wire
from modelserve.api.keys import Key
from modelserve.decide import fleet, holding
from modelserve.gateway import dispatch
from modelserve.testing import ManualClock

KEY = Key("default", "llama")
READY = fleet.Replica("u", ready=True, address="127.0.0.1:1")


def served(clock: ManualClock) -> tuple[dispatch.Dispatcher, dispatch.Ticket]:
    """A dispatcher with one request in flight."""
    made = dispatch.Dispatcher(clock)
    made.update(KEY, holding.Terms(), [READY])
    return made, made.arrive(KEY, 1)


async def test_the_counters_of_a_deleted_model_are_told_for_a_while_and_then_forgotten() -> None:
    clock = ManualClock()
    made, ticket = served(clock)
    made.complete(ticket)
    made.remove(KEY)
    await clock.advance(dispatch.FORGET_REAL_S - 1)
    made.advance()
    assert dict(made.items())[KEY].completions == 1
    await clock.advance(1)
    made.advance()
    assert dict(made.items()) == {}


async def test_a_deleted_model_with_a_request_in_flight_is_not_forgotten() -> None:
    clock = ManualClock()
    made, ticket = served(clock)
    made.remove(KEY)
    await clock.advance(dispatch.FORGET_REAL_S)
    made.advance()
    assert made.in_flight == 1
    made.end(ticket)
    made.advance()
    assert dict(made.items()) == {}


async def test_a_model_that_came_again_keeps_its_counters() -> None:
    clock = ManualClock()
    made, ticket = served(clock)
    made.complete(ticket)
    made.remove(KEY)
    made.update(KEY, holding.Terms(), [READY])
    await clock.advance(2 * dispatch.FORGET_REAL_S)
    made.advance()
    assert dict(made.items())[KEY].arrivals == 1


async def test_models_that_only_the_operator_told_of_are_forgotten() -> None:
    clock = ManualClock()
    made = dispatch.Dispatcher(clock)
    for number in range(20):
        made.share(wire.Share("default", f"gone-{number}", 4))
        made.fence(wire.FenceRequest("default", f"fenced-{number}", f"f{number}", ("u",)))
    await clock.advance(dispatch.FORGET_REAL_S)
    made.advance()
    assert dict(made.items()) == {}


@pytest.mark.parametrize("told_first", [False, True])
async def test_a_model_that_is_there_stays(told_first: bool) -> None:
    clock = ManualClock()
    made = dispatch.Dispatcher(clock)
    if told_first:
        made.share(wire.Share(KEY.namespace, KEY.name, 4))
    made.update(KEY, holding.Terms(), [READY])
    await clock.advance(2 * dispatch.FORGET_REAL_S)
    made.advance()
    assert dict(made.items())[KEY].share == (4 if told_first else None)
    assert made.arrive(KEY, 1).verdict == READY
