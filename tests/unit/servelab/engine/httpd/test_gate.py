"""Why a connection is not read, and what its body has of the budget."""

import asyncio

from servelab.engine.httpd.gate import Gate, Hold
from servelab.engine.httpd.limits import BodyBudget


class Line(asyncio.Transport):
    """Notes whether it is read."""

    reads = True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


class Owner:
    """The connection: hands on that there is room."""

    def __init__(self, budget: BodyBudget) -> None:
        self.line = Line()
        self.gate = Gate(self.line, budget)

    def room_given(self) -> None:
        self.gate.room_given()


def test_it_is_read_again_when_nothing_at_all_is_in_the_way() -> None:
    owner = Owner(BodyBudget(10))
    owner.gate.hold(Hold.PIPELINE)
    owner.gate.reserve(owner, 20)
    seen = []
    for why in (Hold.PIPELINE, Hold.ROOM):
        owner.gate.lift(why)
        seen.append(owner.line.reads)
    assert seen == [False, True]


def test_a_body_waits_for_room_and_is_read_once_another_gave_it_back() -> None:
    budget = BodyBudget(10)
    first, second = Owner(budget), Owner(budget)
    first.gate.reserve(first, 8)
    second.gate.reserve(second, 8)
    assert (second.line.reads, second.gate.waits_bytes) == (False, 8)
    first.gate.release(first)
    assert (second.line.reads, second.gate.reserved_bytes, budget.room_bytes) == (True, 8, 2)


def test_what_is_handed_over_is_not_given_back_twice() -> None:
    budget = BodyBudget(10)
    owner = Owner(budget)
    owner.gate.reserve(owner, 8)
    assert owner.gate.hand_over() == 8
    owner.gate.release(owner)
    assert budget.room_bytes == 2


def test_who_stops_waiting_is_read_and_leaves_the_room_to_others() -> None:
    budget = BodyBudget(10)
    first, second, third = Owner(budget), Owner(budget), Owner(budget)
    for owner, n_bytes in ((first, 5), (second, 8), (third, 4)):
        owner.gate.reserve(owner, n_bytes)
    second.gate.withdraw(second)
    assert (second.line.reads, third.gate.reserved_bytes, budget.room_bytes) == (True, 4, 1)
