"""Who holds a Lease stops in time, and who waits for it counts no more than was seen."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from modelserve.adapters import lapsing

SPAN_REAL_S, LAPSE_REAL_S, RETRY_REAL_S = 10.0, 15.0, 3.0
PATIENCE_REAL_S = LAPSE_REAL_S - 2 * RETRY_REAL_S


@given(
    asked=st.floats(0, 1e6),
    delay=st.floats(0, 30),
    pauses=st.lists(st.floats(0.01, 60), max_size=30),
)
def test_a_holder_stops_before_anybody_may_think_it_dead(
    asked: float, delay: float, pauses: Sequence[float]
) -> None:
    # Its renewal reaches the server, and who looks, some time after it was asked for.
    mandate, seen = lapsing.Mandate(SPAN_REAL_S), lapsing.Stillness(5.0, PATIENCE_REAL_S)
    mandate.renewed(asked, asked)
    now = asked + delay
    seen.see("t1", now)
    for pause in pauses:
        now += pause
        seen.see("t1", now)
        assert not mandate.holds(now) or seen.counted_real_s < LAPSE_REAL_S


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=30))
def test_only_time_that_was_looked_at_closely_is_counted(pauses: Sequence[float]) -> None:
    seen, now = lapsing.Stillness(5.0, PATIENCE_REAL_S), 0.0
    seen.see("t1", now)
    for pause in pauses:
        now += pause
        seen.see("t1", now)
    assert abs(seen.counted_real_s - sum(each for each in pauses if each <= 5.0)) < 1.0


def test_a_renewal_begins_the_count_anew() -> None:
    seen = lapsing.Stillness(5.0, PATIENCE_REAL_S)
    for now, stamp in ((0, "t1"), (4, "t1"), (8, "t2"), (12, "t2")):
        seen.see(stamp, now)
    assert seen.counted_real_s == 4


def test_a_lease_that_was_deleted_renews_nothing() -> None:
    seen = lapsing.Stillness(5.0, PATIENCE_REAL_S)
    seen.see("t1", 0)
    for now in (4, 8, 12, 16):
        seen.look(now)
    assert seen.counted_real_s == 16


@given(st.floats(0, PATIENCE_REAL_S))
def test_a_dead_holder_of_a_slow_server_is_replaced(latency: float) -> None:
    seen = lapsing.Stillness(5.0, PATIENCE_REAL_S)
    now = latency
    while seen.counted_real_s < LAPSE_REAL_S:
        seen.see("t1", now, latency)
        assert now < LAPSE_REAL_S + 3 * (RETRY_REAL_S + PATIENCE_REAL_S)
        now += RETRY_REAL_S + latency


@given(
    latency=st.floats(0, 4.9), drawn=st.lists(st.floats(0, 1), min_size=80), phase=st.floats(0, 15)
)
def test_a_holder_that_renews_at_a_slow_server_is_not_thought_dead(
    latency: float, drawn: Sequence[float], phase: float
) -> None:
    # A renewal reads and writes; when within the latency the server does so is anybody's guess.
    chance = iter(drawn)
    renewals, asked = [], 0.0
    for _ in range(40):
        renewals.append(asked + latency * (1 + next(chance)))
        answered = asked + 2 * latency
        asked = answered + min(RETRY_REAL_S, SPAN_REAL_S - 2 * latency)
    seen, now = lapsing.Stillness(5.0, PATIENCE_REAL_S), phase
    while now + latency < renewals[-1]:
        looked = now + latency * next(chance, 0.5)
        seen.see(sum(at <= looked for at in renewals), now + latency, latency)
        assert seen.counted_real_s < LAPSE_REAL_S
        now += latency + RETRY_REAL_S


@given(hang=st.floats(0, 200), began=st.floats(0, 3))
def test_a_server_that_hung_for_all_makes_nobody_take_over(hang: float, began: float) -> None:
    # It answers all at once when it is back; the holder, too, asks again within its pause.
    seen, back = lapsing.Stillness(5.0, PATIENCE_REAL_S), began + hang
    seen.see("t1", 0)
    seen.see("t1", back, hang)
    seen.see("t1", back + RETRY_REAL_S)
    assert seen.counted_real_s <= LAPSE_REAL_S
    seen.see("t2", back + 2 * RETRY_REAL_S)
    assert seen.counted_real_s == 0


def test_a_lapse_begins_another_term_even_if_nobody_looked_meanwhile() -> None:
    mandate = lapsing.Mandate(SPAN_REAL_S)
    terms = []
    for asked, now in ((0.0, 0.1), (3.0, 3.1), (20.0, 20.1), (23.0, 23.1)):
        mandate.renewed(asked, now)
        terms.append(mandate.term)
    assert terms == [1, 1, 2, 2]
