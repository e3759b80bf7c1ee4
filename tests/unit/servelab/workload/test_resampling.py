"""Another draw of a trace keeps what is within a block, the length, and the rate on average."""

import random
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from modelserve import errors
from servelab.workload import arrivals, resampling


def trace(count: int) -> list[arrivals.Arrival]:
    """One a second; the prompt tells which it is."""
    return [arrivals.Arrival(float(at), at + 1, 7) for at in range(count)]


def drawn(count: int, length_s: float, seed: int = 0) -> list[arrivals.Arrival]:
    rng = random.Random(seed)
    return list(resampling.blocks(trace(count), length_s, rng, "a.csv"))


@given(st.integers(3, 200), st.floats(1, 60), st.integers())
def test_a_draw_is_as_long_as_the_trace_and_in_order(
    count: int, length_s: float, seed: int
) -> None:
    assume(length_s < count)
    found = drawn(count, length_s, seed)
    assert found == sorted(found, key=lambda each: each.at_s)
    assert all(0 <= each.at_s < count for each in found)
    # A block of any length has one arrival a second, give or take its ends.
    assert abs(len(found) - count) <= count / length_s + 1


def test_within_a_block_requests_follow_each_other_as_they_did() -> None:
    follow = sum(b.input_tokens == a.input_tokens % 600 + 1 for a, b in pairwise(drawn(600, 60)))
    assert follow >= 600 - 11  # at the seams of ten blocks


def test_every_request_is_drawn_as_often_on_average() -> None:
    seen = [0] * 50
    for seed in range(400):
        for each in drawn(50, 20, seed):
            seen[each.input_tokens - 1] += 1
    assert min(seen) > 300
    assert max(seen) < 500


def test_seeds_draw_different_hours() -> None:
    assert drawn(600, 60) != drawn(600, 60, seed=1)


@pytest.mark.parametrize("count", [0, 1, 30])
def test_a_trace_no_longer_than_a_block_is_refused(count: int) -> None:
    with pytest.raises(errors.InputError, match=r"a\.csv lasts .* lower resampleSeconds"):
        drawn(count, 30)


@pytest.mark.parametrize("count", [0, 1, 30])
def test_what_keeps_blocks_from_being_drawn_is_known_before(count: int) -> None:
    said = resampling.obstacle(trace(count), 30, "a.csv")
    with pytest.raises(errors.InputError) as told:
        drawn(count, 30)
    assert said == str(told.value)


def test_nothing_keeps_them_from_being_drawn_of_a_longer_trace() -> None:
    assert resampling.obstacle(trace(31), 30, "a.csv") == ""
    assert drawn(31, 30)


def test_no_more_is_read_than_shows_that_it_is_long_enough() -> None:
    read = iter(trace(90))
    assert resampling.obstacle(read, 30, "a.csv") == ""
    assert next(read).at_s == 32


def test_of_a_cut_the_silence_at_its_end_is_drawn_too() -> None:
    rng = random.Random(0)
    found = list(resampling.blocks([*trace(30), *late()], 10, rng, "a.csv", seconds=60))
    assert 30 < found[-1].at_s < 60
    assert len(found) < 60  # no second of the half minute of silence has one


def late() -> list[arrivals.Arrival]:
    return [arrivals.Arrival(900.0, 1, 1)]
