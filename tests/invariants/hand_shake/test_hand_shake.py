"""Invariants 2 and 3: every order of messages, and a crash of each party at each step, to the end.

What may happen is in conftest.py, with the product's own code for everybody's decisions.
"""

import os
from typing import Any

import pytest

DEEP = bool(os.environ.get("MODELSERVE_DEEP"))
Moments = dict[Any, tuple[str, Any]]


def explore(model: Any, first: Any) -> tuple[int, int]:
    """Go through every order of everything; how many moments and how many ends there are.

    What is left when nothing more can happen must be right. Each step uses up something, so every
    order comes to an end, and a fence or a request that is stuck shows there.
    """
    came: Moments = {first: ("", None)}
    stack, ends = [first], 0
    while stack:
        world = stack.pop()
        try:
            after = list(model.following(world))
            if not after:
                ends += 1
                assert not model.unserved(world), "a request has no answer"
                assert model.at_rest(world), "a fence, a held request or a replica is left"
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(story(world, came))) from error
        for step, then in after:
            if then not in came:
                came[then] = step, world
                stack.append(then)
    return len(came), ends


def story(world: Any, came: Moments) -> list[str]:
    """The steps that led there."""
    steps: list[str] = []
    while world is not None:
        step, world = came[world]
        steps.append(step)
    return steps[::-1]


SIZES = [
    pytest.param(1, 2, 0, 0, id="one gateway, two requests"),
    pytest.param(1, 1, 1, 0, id="one gateway, a crash or a lost write"),
    pytest.param(1, 1, 0, 1, id="one gateway, a delay"),
    pytest.param(2, 1, 0, 0, id="two gateways"),
    pytest.param(3, 1, 0, 0, id="three gateways"),
]
# Minutes: MODELSERVE_DEEP=1.
DEEPER = [
    pytest.param(1, 1, 1, 1, id="one gateway, a crash, a delay"),
    pytest.param(1, 2, 1, 0, id="one gateway, two requests, a crash"),
    pytest.param(2, 1, 1, 0, id="two gateways, a crash"),
    pytest.param(2, 2, 0, 0, id="two gateways, two requests"),
    pytest.param(3, 1, 1, 0, id="three gateways, a crash"),
]


@pytest.mark.parametrize(
    ("gateways", "arrivals", "mishaps", "hurry"), SIZES + (DEEPER if DEEP else [])
)
def test_every_request_gets_its_answer_and_the_model_sleeps(
    model: Any, gateways: int, arrivals: int, mishaps: int, hurry: int
) -> None:
    moments, ends = explore(model, model.begin(gateways, arrivals, mishaps, hurry))
    assert moments > ends > 0
