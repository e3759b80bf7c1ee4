"""Room for bodies that are coming in."""

from servelab.engine.httpd.limits import BodyBudget


class Reader:
    def __init__(self) -> None:
        self.given = 0

    def room_given(self) -> None:
        self.given += 1


def test_room_is_given_in_the_order_of_asking() -> None:
    budget, first, second, third = BodyBudget(10), Reader(), Reader(), Reader()
    assert budget.reserve(first, 8)
    assert not budget.reserve(second, 9)
    assert not budget.reserve(third, 1), "though there is room: the second came before"
    budget.release(8)
    assert (second.given, third.given, budget.room_bytes) == (1, 1, 0)


def test_who_waits_no_more_lets_the_next_one_in() -> None:
    budget, first, second, third = BodyBudget(10), Reader(), Reader(), Reader()
    budget.reserve(first, 8)
    budget.reserve(second, 9)
    budget.reserve(third, 2)
    budget.withdraw(second)
    assert (second.given, third.given, budget.room_bytes) == (0, 1, 0)
