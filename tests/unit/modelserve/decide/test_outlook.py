"""What arrival rate is expected: a burst counts for as much of it as usually lasts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.decide import outlook

COLD_START_S = 60.0
NOTHING = outlook.Outlook()


def after(rates_per_s: list[float], known: outlook.Outlook = NOTHING) -> outlook.Outlook:
    """After these rates, ten seconds each, told every second."""
    arrived = 0
    for number, rate_per_s in enumerate(rates_per_s):
        for second in range(10):
            now_s = float(number * 10 + second)
            arrived += round(rate_per_s)
            known = outlook.advance(known, arrived, round(rate_per_s), COLD_START_S, now_s)
    return known


def test_the_first_traffic_is_taken_at_its_word() -> None:
    assert outlook.Outlook().rate_per_s(5.0, 10.0) == 5.0


def test_a_burst_is_taken_to_last_until_bursts_are_known_to_end() -> None:
    calm = after([2.0] * 30)
    assert calm.rate_per_s(20.0, 10.0) == pytest.approx(20.0, rel=0.1)


def test_bursts_that_are_over_before_a_replica_starts_count_for_little() -> None:
    spiky = after(([2.0] * 19 + [20.0]) * 12)
    assert spiky.mean_per_s == pytest.approx(2.9, abs=1.0)
    assert spiky.rate_per_s(20.0, 10.0) < 8


def test_spells_that_outlast_a_cold_start_count_in_full() -> None:
    spells = after(([0.0] * 60 + [10.0] * 60) * 4)
    assert spells.rate_per_s(10.0, 10.0) > 7


def test_a_rise_beyond_everything_seen_is_taken_at_its_word_again() -> None:
    spiky = after(([2.0] * 19 + [6.0]) * 12)
    assert spiky.rate_per_s(6.0, 10.0) < 4
    assert spiky.rate_per_s(200.0, 10.0) > 150


def test_what_chance_makes_of_a_rate_is_left_out() -> None:
    assert outlook.beyond_chance(0.4, 0.2) == 0
    assert outlook.beyond_chance(10.0, 0.2) == pytest.approx(9.92)
    assert outlook.beyond_chance(-10.0, 0.2) == pytest.approx(-9.92)


def test_a_long_silence_brings_the_mean_to_zero_at_once_or_bit_by_bit() -> None:
    busy = after([5.0] * 30)
    at_once = outlook.advance(busy, 1500, 0, COLD_START_S, 4000.0)
    bit_by_bit = busy
    for now_s in range(300, 4001, 10):
        bit_by_bit = outlook.advance(bit_by_bit, 1500, 0, COLD_START_S, float(now_s))
    assert at_once.mean_per_s == pytest.approx(bit_by_bit.mean_per_s, rel=0.05)
    assert at_once.mean_per_s < 0.001


def test_a_model_that_never_had_traffic_remembers_nothing() -> None:
    assert outlook.advance(outlook.Outlook(), 0, 0, COLD_START_S, 500.0) == outlook.Outlook()


def test_blocks_hold_several_reports_and_a_cold_start_few_blocks() -> None:
    slow = outlook.advance(outlook.Outlook(), 1, 1, 90.0, 0.0, told_every_s=60.0)
    assert slow.block_s == 180
    long = outlook.advance(outlook.Outlook(), 1, 1, 1000.0, 0.0)
    assert long.block_s == 80


def test_what_was_learnt_survives_a_restart() -> None:
    spiky = after(([2.0] * 19 + [20.0]) * 12)
    again = outlook.restored(spiky.mean_per_s, spiky.square, spiky.product)
    assert again.rate_per_s(20.0, 10.0) == spiky.rate_per_s(20.0, 10.0)
    assert after([2.0], again).mean_per_s == pytest.approx(spiky.mean_per_s, rel=0.1)


@given(
    rates=st.lists(st.integers(0, 50), max_size=60),
    now_per_s=st.floats(0, 1e6),
    horizons=st.lists(st.floats(1, 2000), min_size=1, max_size=4),
)
def test_the_expected_rate_lies_between_the_mean_and_the_present_one(
    rates: list[int], now_per_s: float, horizons: list[float]
) -> None:
    known = outlook.Outlook()
    for number, count in enumerate(rates):
        horizon_s = horizons[number % len(horizons)]
        arrived = sum(rates[: number + 1])
        known = outlook.advance(known, arrived, count, horizon_s, number * 7.0)
    expected = known.rate_per_s(now_per_s, 10.0)
    low, high = sorted((known.mean_per_s, now_per_s))
    assert low - 1e-6 <= expected <= high * (1 + 1e-9) + 1e-6
    assert len(known.pending) <= 2 * outlook.BLOCKS_MOST
