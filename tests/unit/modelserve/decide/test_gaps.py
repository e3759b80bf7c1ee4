"""Idle gaps, counted by length class."""

from hypothesis import given
from hypothesis import strategies as st

from modelserve.decide import gaps


def of(*lengths_s: float) -> gaps.Gaps:
    found = gaps.Gaps()
    for length_s in lengths_s:
        found = gaps.add(found, length_s)
    return found


def test_nothing_is_said_of_fewer_than_ten_gaps() -> None:
    assert of(*[50] * 9).worth_s(300) is None
    assert of(*[50] * 10).worth_s(300) is not None


def test_short_pauses_are_no_gaps() -> None:
    assert of(*[0.5] * 500, *[9.9] * 500) == gaps.Gaps()


def test_a_hundred_gaps_say_how_long_to_wait() -> None:
    worth_s = of(*[40] * 198, 250).worth_s(300)
    assert worth_s is not None
    assert 40 < worth_s < 50


def test_a_dozen_gaps_do_not_tell_the_longest_in_a_hundred() -> None:
    assert of(*[40] * 12).worth_s(300) == 300


def test_gaps_that_no_cooldown_bridges_are_not_waited_for() -> None:
    assert of(*[2000] * 20).worth_s(300) == 0
    assert of(*[2000] * 20, *[40] * 20).worth_s(300) == 300


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=50))
def test_any_lengths_are_taken_and_the_counts_stay_bounded(lengths_s: list[float]) -> None:
    found = of(*lengths_s * 40)
    assert len(found.counts) <= gaps.CLASSES
    assert sum(found.counts) <= gaps.MOST
    worth_s = found.worth_s(300)
    assert worth_s is None or 0 <= worth_s <= 300


def test_a_status_with_nonsense_is_read_all_the_same() -> None:
    assert gaps.restored([3, -1, 7]) == gaps.Gaps((3, 0, 7))
    assert len(gaps.restored([1] * 200).counts) == gaps.CLASSES
