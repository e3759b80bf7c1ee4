"""Who holds a Lease stops in time, and who waits for it counts no more than was seen."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from modelserve.adapters import lapsing

SPAN_REAL_S, LAPSE_REAL_S = 10.0, 15.0


@given(
    asked=st.floats(0, 1e6),
    delay=st.floats(0, 30),
    pauses=st.lists(st.floats(0.01, 60), max_size=30),
)
def test_a_holder_stops_before_anybody_may_think_it_dead(
    asked: float, delay: float, pauses: Sequence[float]
) -> None:
    # Its renewal reaches the server, and who looks, some time after it was asked for.
    mandate, seen = lapsing.Mandate(SPAN_REAL_S), lapsing.Stillness(5.0)
    mandate.renewed(asked, asked)
    now = asked + delay
    seen.see("t1", now)
    for pause in pauses:
        now += pause
        seen.see("t1", now)
        assert not mandate.holds(now) or seen.counted_real_s < LAPSE_REAL_S


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=30))
def test_only_time_that_was_looked_at_closely_is_counted(pauses: Sequence[float]) -> None:
    seen, now = lapsing.Stillness(5.0), 0.0
    seen.see("t1", now)
    for pause in pauses:
        now += pause
        seen.see("t1", now)
    assert abs(seen.counted_real_s - sum(each for each in pauses if each <= 5.0)) < 1.0


def test_a_renewal_begins_the_count_anew() -> None:
    seen = lapsing.Stillness(5.0)
    for now, stamp in ((0, "t1"), (4, "t1"), (8, "t2"), (12, "t2")):
        seen.see(stamp, now)
    assert seen.counted_real_s == 4


def test_a_lease_that_was_deleted_renews_nothing() -> None:
    seen = lapsing.Stillness(5.0)
    seen.see("t1", 0)
    for now in (4, 8, 12, 16):
        seen.look(now)
    assert seen.counted_real_s == 16


def test_a_lapse_begins_another_term_even_if_nobody_looked_meanwhile() -> None:
    mandate = lapsing.Mandate(SPAN_REAL_S)
    terms = []
    for asked, now in ((0.0, 0.1), (3.0, 3.1), (20.0, 20.1), (23.0, 23.1)):
        mandate.renewed(asked, now)
        terms.append(mandate.term)
    assert terms == [1, 1, 2, 2]
