"""Links: their capacities over time, and the flows that pass them."""

import pytest

from modelserve import errors
from servelab.timing import fairness, network, trajectory


def flow(*links: str) -> trajectory.Flow:
    piece = trajectory.Piece(1.0, fairness.Demand(links))
    return trajectory.Flow("f", (piece,), 0.0, 0)


def test_the_first_capacity_counts_from_ever_and_later_ones_from_their_time() -> None:
    links = network.Network()
    assert not links.set("a", 10, 5.0)
    assert links.set("a", 4, 7.0)
    assert [links.capacity("a", at_s) for at_s in (0.0, 6.9, 7.0)] == [10, 10, 4]
    assert list(links.changes([flow("a")], 6.0)) == [(7.0, "a")]


def test_the_same_capacity_again_changes_nothing() -> None:
    links = network.Network()
    links.set("a", 10, 0.0)
    assert not links.set("a", 10, 3.0)


def test_what_was_said_for_later_is_forgotten() -> None:
    links = network.Network()
    links.set("a", 10, 0.0)
    links.set("a", 4, 7.0)
    assert links.set("a", 10, 5.0)
    assert links.capacity("a", 8.0) == 10


def test_a_flow_over_an_unknown_link_joins_nothing() -> None:
    links = network.Network()
    links.set("a", 10, 0.0)
    with pytest.raises(errors.InputError, match="nobody gave link b a rate"):
        links.join(flow("a", "b"))
    assert list(links.users("a")) == []


def test_flows_are_reached_over_links_of_others() -> None:
    links = network.Network()
    for name in "abc":
        links.set(name, 10, 0.0)
    first, between, last = flow("a"), flow("a", "b"), flow("b")
    other = flow("c")
    for each in (first, between, last, other):
        links.join(each)
    assert list(links.reach([first], 0.0)) == [first, between, last]


def test_a_dropped_link_goes_with_its_last_flow() -> None:
    links = network.Network()
    links.set("a", 10, 0.0)
    only = flow("a")
    links.join(only)
    links.drop("a")
    assert "a" in links.capacities
    links.leave(only)
    assert "a" not in links.capacities
