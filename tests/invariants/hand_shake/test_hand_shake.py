"""Invariants 2 and 3: every order of messages, and a crash of each party at each step, to the end.

What may happen is in ``modelserve.testing.handshake``, with the product's own code for everybody's
decisions.
"""

import os
from collections.abc import Callable, Iterable, Iterator

import pytest

from modelserve.testing.handshake import steps, world
from modelserve.testing.handshake.world import World

DEEP = bool(os.environ.get("MODELSERVE_DEEP"))
Moments = dict[World, tuple[str, World | None]]
Following = Callable[[World], Iterator[tuple[str, World]]]


def explore(
    first: Iterable[World], following: Following = steps.following
) -> tuple[int, set[World]]:
    """Go through every order of everything; how many moments there are, and all the ends.

    What is left when nothing more can happen must be right. Each step uses up something, so every
    order comes to an end, and a fence or a request that is stuck shows there.
    """
    came: Moments = dict.fromkeys(first, ("", None))
    stack, ends = list(came), set()
    while stack:
        now = stack.pop()
        try:
            after = list(following(now))
            if not after:
                ends.add(now)
                assert not world.unserved(now), "a request has no answer"
                assert world.at_rest(now), "a fence, a held request or a replica is left"
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(story(now, came))) from error
        for step, then in after:
            then = world.canonical(then)
            if then not in came:
                came[then] = step, now
                stack.append(then)
    return len(came), ends


def story(last: World, came: Moments) -> list[str]:
    """The steps that led there."""
    led: list[str] = []
    now: World | None = last
    while now is not None:
        step, now = came[now]
        led.append(step)
    return led[::-1]


SIZES = [
    pytest.param(1, 2, 0, 0, id="one gateway, two requests"),
    pytest.param(1, 1, 2, 0, id="one gateway, two crashes or lost writes"),
    pytest.param(1, 1, 0, 1, id="one gateway, a delay"),
    pytest.param(1, 1, 1, 1, id="one gateway, a crash, a delay"),
    pytest.param(3, 1, 1, 0, id="three gateways, a crash"),
    pytest.param(3, 1, 2, 0, id="three gateways, two crashes"),
    pytest.param(3, 2, 0, 0, id="three gateways, two requests"),
]
# Some 100 CPU seconds in all: MODELSERVE_DEEP=1.
DEEPER = [
    pytest.param(1, 1, 3, 0, id="one gateway, three crashes"),
    pytest.param(1, 2, 2, 0, id="one gateway, two requests, two crashes"),
    pytest.param(2, 2, 1, 0, id="two gateways, two requests, a crash"),
    pytest.param(3, 2, 1, 0, id="three gateways, two requests, a crash"),
    pytest.param(3, 1, 1, 1, id="three gateways, a crash, a delay"),
    pytest.param(5, 1, 2, 0, id="five gateways, two crashes"),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("gateways", "arrivals", "mishaps", "hurry"), SIZES + (DEEPER if DEEP else [])
)
def test_every_request_gets_its_answer_and_the_model_sleeps(
    gateways: int, arrivals: int, mishaps: int, hurry: int
) -> None:
    moments, ends = explore(world.begin(gateways, arrivals, mishaps, hurry))
    assert moments > len(ends) > 0


@pytest.mark.parametrize(
    "size", [(1, 2, 0, 0), (1, 1, 1, 0), (1, 1, 0, 1), (2, 1, 1, 0), (3, 1, 0, 0)]
)
def test_orders_that_are_left_out_end_no_other_way(size: tuple[int, int, int, int]) -> None:
    few, ends = explore(world.begin(*size))
    all_, all_ends = explore(world.begin(*size), steps.every)
    assert few <= all_
    assert ends == all_ends
