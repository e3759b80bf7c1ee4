"""A front crosses another where nobody on the other costs as little and waits as long."""

import math

import pytest

from servelab.sweep import fronts, summary


def reach(price: float, wait_s: float, served: float = 1.0) -> summary.Setup:
    return summary.Setup({}, "p", 1, price, math.nan, wait_s, 1.0, served)


def crossing(*theirs: summary.Setup) -> bool:
    """Held against 10 GPU hours at 2 s and 20 at 1 s."""
    ours = [reach(10, 2.0), reach(20, 1.0), reach(30, 5.0)]
    return fronts.of([("ours", ours), ("theirs", theirs)], ())[1].crosses


@pytest.mark.parametrize(
    ("theirs", "crosses"),
    [
        pytest.param(reach(1, 601.0), None, id="longer than a request is held"),
        pytest.param(reach(10, 2.0), False, id="the same"),
        pytest.param(reach(9.95, 2.0), False, id="as cheap, within a hundredth"),
        pytest.param(reach(9.8, 2.0), True, id="cheaper at the same wait"),
        pytest.param(reach(10, 1.83), False, id="as quick, within a tenth"),
        pytest.param(reach(10, 1.8), True, id="quicker for no more"),
        pytest.param(reach(15, 1.5), True, id="between two of ours"),
        pytest.param(reach(40, 0.5), True, id="quicker than any of ours"),
        pytest.param(reach(5, 9.0), True, id="cheaper than any of ours"),
        pytest.param(reach(25, 4.0), False, id="beaten"),
        pytest.param(reach(1, 0.1, served=0.5), None, id="serves half"),
    ],
)
def test_a_point_is_ahead_unless_one_of_ours_holds_it(
    theirs: summary.Setup, crosses: bool | None
) -> None:
    if crosses is None:
        assert len(fronts.of([("ours", [reach(9, 9)]), ("theirs", [theirs])], ())) == 1
    else:
        assert crossing(theirs) is crosses


def test_one_point_ahead_is_enough() -> None:
    assert crossing(reach(30, 1.0), reach(10, 1.0))


def test_each_point_says_what_ours_pays_more() -> None:
    found = fronts.of([("ours", [reach(10, 2.0)]), ("theirs", [reach(8, 2.0), reach(9, 1.0)])], ())
    more = [point.more for point in found[1].points]
    assert more == [pytest.approx(0.25), math.inf]


def test_a_bound_crosses_nothing() -> None:
    found = fronts.of([("ours", [reach(10, 2.0)]), ("oracle", [reach(5, 1.0)])], ("oracle",))
    assert [(each.bound, each.crosses) for each in found] == [(False, False), (True, False)]


def test_json_has_null_for_a_wait_that_ours_never_has() -> None:
    found = fronts.of([("ours", [reach(10, 2.0)]), ("theirs", [reach(8, 1.0)])], ())
    point = found[1].to_json()["points"][0]
    assert (point["judged_needs"], point["ahead"]) == (None, True)


def test_the_judged_front_is_there_even_if_it_serves_nothing() -> None:
    found = fronts.of([("ours", [reach(1, 1.0, 0.1)]), ("theirs", [reach(8, 1.0)])], ())
    assert [(each.policy, len(each.points)) for each in found] == [("ours", 0), ("theirs", 1)]
