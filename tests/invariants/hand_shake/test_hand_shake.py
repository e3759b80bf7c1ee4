"""Invariants 2 and 3: every order of messages, and a crash of each party at each step, to the end.

What may happen is in ``modelserve.testing.handshake``, with the product's own code for everybody's
decisions.
"""

import os

import pytest

from modelserve.testing.handshake import steps, world
from modelserve.testing.handshake.world import World

DEEP = bool(os.environ.get("MODELSERVE_DEEP"))
Moments = dict[World, tuple[str, World | None]]


def explore(first: World) -> tuple[int, int]:
    """Go through every order of everything; how many moments and how many ends there are.

    What is left when nothing more can happen must be right. Each step uses up something, so every
    order comes to an end, and a fence or a request that is stuck shows there.
    """
    came: Moments = {first: ("", None)}
    stack, ends = [first], 0
    while stack:
        now = stack.pop()
        try:
            after = list(steps.following(now))
            if not after:
                ends += 1
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
    pytest.param(1, 1, 1, 0, id="one gateway, a crash or a lost write"),
    pytest.param(1, 1, 0, 1, id="one gateway, a delay"),
    pytest.param(2, 1, 0, 0, id="two gateways"),
    pytest.param(3, 1, 0, 0, id="three gateways"),
]
# Minutes, the last ones an hour: MODELSERVE_DEEP=1.
LONG = pytest.mark.timeout(4 * 3600)
DEEPER = [
    pytest.param(1, 1, 1, 1, id="one gateway, a crash, a delay", marks=LONG),
    pytest.param(1, 2, 1, 0, id="one gateway, two requests, a crash", marks=LONG),
    pytest.param(1, 1, 2, 0, id="one gateway, two crashes", marks=LONG),
    pytest.param(2, 2, 0, 0, id="two gateways, two requests", marks=LONG),
    pytest.param(2, 1, 1, 0, id="two gateways, a crash", marks=LONG),
    pytest.param(3, 1, 1, 0, id="three gateways, a crash", marks=LONG),
]


@pytest.mark.parametrize(
    ("gateways", "arrivals", "mishaps", "hurry"), SIZES + (DEEPER if DEEP else [])
)
def test_every_request_gets_its_answer_and_the_model_sleeps(
    gateways: int, arrivals: int, mishaps: int, hurry: int
) -> None:
    moments, ends = explore(world.begin(gateways, arrivals, mishaps, hurry))
    assert moments > ends > 0
