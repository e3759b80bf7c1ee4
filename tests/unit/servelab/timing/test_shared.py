"""Transfers that share their links."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.timing import shared, transfers

BACKEND = "storage/lustre"
WEIGHTS_BYTES = 140e9


def load(size_bytes: float = WEIGHTS_BYTES, **more: float) -> transfers.Work:
    return transfers.Work(0.0, size_bytes, (transfers.Stage(size_bytes, (BACKEND,), **more),))  # type: ignore[arg-type]


def figures(moves: shared.Shared, key: str, now_s: float) -> tuple[float, ...]:
    return dataclasses.astuple(moves.progress(key, now_s))


@pytest.fixture
def moves() -> shared.Shared:
    found = shared.Shared()
    found.set_link(BACKEND, 40e9)
    return found


def test_it_is_a_transfers() -> None:
    found: transfers.Transfers = shared.Shared()
    assert found.changes == 0


def test_ten_replicas_on_one_backend_take_what_arithmetic_says(moves: shared.Shared) -> None:
    for number in range(10):
        moves.start(str(number), load(), 0.0)
    ends = [moves.ends_at_s(str(number)) for number in range(10)]
    assert ends == pytest.approx([10 * 140 / 40] * 10, rel=1e-9)


def test_ten_that_start_one_after_the_other_still_use_the_whole_backend(
    moves: shared.Shared,
) -> None:
    for number in range(10):
        moves.start(str(number), load(), float(number))
    last_s = max(moves.ends_at_s(str(number)) for number in range(10))
    assert last_s == pytest.approx(35.0, rel=1e-9)


def test_an_end_moves_when_another_starts(moves: shared.Shared) -> None:
    moves.start("a", load(), 0.0)
    assert moves.ends_at_s("a") == pytest.approx(3.5)
    moves.start("b", load(), 1.0)
    assert (moves.changes, moves.take_moved(), moves.take_moved()) == (1, ["a"], [])
    assert moves.ends_at_s("a") == pytest.approx(1.0 + 2 * 2.5)
    moves.stop("b", 2.0)
    assert moves.ends_at_s("a") == pytest.approx(4.0)


def test_a_start_in_the_past_counts_from_then(moves: shared.Shared) -> None:
    moves.start("a", load(), 0.0)
    assert moves.progress("a", 2.0).done_bytes == pytest.approx(80e9)
    moves.start("b", load(), 0.0)
    assert moves.progress("a", 2.0).done_bytes == pytest.approx(40e9)


def test_a_start_in_the_future_moves_the_end_already(moves: shared.Shared) -> None:
    moves.start("a", load(), 0.0)
    moves.start("b", load(), 3.0)
    assert moves.ends_at_s("a") == pytest.approx(4.0)
    assert figures(moves, "b", 1.0) == pytest.approx((0.0, 140e9, 0.0, 4.0))


def test_a_loader_that_is_the_limit_does_not_feel_others(moves: shared.Shared) -> None:
    for number in range(9):
        moves.start(str(number), load(cap_bytes_per_s=4e9), 0.0)
    assert moves.ends_at_s("0") == pytest.approx(35.0)
    moves.start("fast", load(), 0.0)
    assert moves.ends_at_s("fast") == pytest.approx(35.0)


def test_eight_connections_get_eight_shares(moves: shared.Shared) -> None:
    moves.start("eight", load(connections=8), 0.0)
    moves.start("one", load(), 0.0)
    assert moves.progress("eight", 0.0).bytes_per_s == pytest.approx(8 * 40e9 / 9)


def test_the_first_byte_comes_after_the_latency(moves: shared.Shared) -> None:
    moves.start("a", load(latency_s=1.0), 0.0)
    assert moves.ends_at_s("a") == pytest.approx(4.5)
    assert moves.progress("a", 0.5).bytes_per_s == 0.0
    assert moves.load_bytes_per_s(BACKEND, 0.5) == 0.0
    assert moves.load_bytes_per_s(BACKEND, 1.5) == pytest.approx(40e9)


def test_bytes_that_pass_no_link_count_too(moves: shared.Shared) -> None:
    stage = transfers.Stage(10e9, (), cap_bytes_per_s=1e9, latency_s=1.0)
    moves.start("a", transfers.Work(11.0, 10e9, (stage,)), 0.0)
    assert figures(moves, "a", 5.0) == pytest.approx((4e9, 10e9, 1e9, 6.0))


def test_progress_counts_all_stages(moves: shared.Shared) -> None:
    stages = (transfers.Stage(40e9, (BACKEND,)), transfers.Stage(40e9, (BACKEND,), 20e9))
    moves.start("a", transfers.Work(3.0, 40e9, stages), 0.0)
    assert figures(moves, "a", 0.5) == pytest.approx((10e9, 40e9, 20e9, 2.5))
    assert figures(moves, "a", 2.0) == pytest.approx((30e9, 40e9, 10e9, 1.0))
    assert figures(moves, "a", 9.0) == pytest.approx((40e9, 40e9, 0.0, 0.0))


def test_a_stated_rate_does_not_undo_a_slow_down_until_it_changes(moves: shared.Shared) -> None:
    moves.declare({BACKEND: 40e9}, 0.0)
    moves.start("a", load(), 0.0)
    moves.set_link(BACKEND, 4e9, 0.0)
    moves.declare({BACKEND: 40e9}, 0.0)
    assert moves.ends_at_s("a") == pytest.approx(35.0)
    moves.declare({BACKEND: 80e9}, 0.0)
    assert moves.ends_at_s("a") == pytest.approx(1.75)


def test_links_of_a_node_that_is_gone_can_be_stated_anew(moves: shared.Shared) -> None:
    moves.declare({"node/n/net": 1e9}, 0.0)
    moves.drop_links(["node/n/net", "node/n/disk"])
    moves.declare({"node/n/net": 1e9}, 5.0)
    stage = transfers.Stage(1e9, ("node/n/net",))
    moves.start("a", transfers.Work(1.0, 1e9, (stage,)), 5.0)
    assert moves.ends_at_s("a") == pytest.approx(6.0)


def test_serialised_pulls_follow_each_other_as_their_ends_move(moves: shared.Shared) -> None:
    moves.start("first", load(), 0.0)
    moves.start("second", load(), 0.0, after="first")
    assert moves.ends_at_s("second") == pytest.approx(7.0)
    moves.start("elsewhere", load(), 0.0)
    assert moves.ends_at_s("second") == pytest.approx(10.5)


def test_a_stopped_transfer_is_unknown(moves: shared.Shared) -> None:
    moves.start("a", load(), 0.0)
    moves.stop("a")
    moves.stop("a")
    with pytest.raises(KeyError):
        moves.ends_at_s("a")
    with pytest.raises(KeyError):
        moves.progress("a", 0.0)


def test_a_finished_one_that_is_stopped_late_frees_nothing(moves: shared.Shared) -> None:
    moves.start("a", load(), 0.0)
    moves.start("b", load(2 * WEIGHTS_BYTES), 0.0)
    assert moves.ends_at_s("a") == pytest.approx(7.0)
    moves.stop("a", 8.0)
    assert moves.ends_at_s("b") == pytest.approx(10.5)
    assert moves.changes == 0


seconds = st.one_of(st.just(0.0), st.floats(1e-3, 1e4))
plain = st.builds(transfers.Work, seconds, st.floats(0.0, 1e12))


@given(plain, st.floats(-1e9, 2e9), st.floats(0.0, 1.5))
def test_a_work_without_stages_is_as_alone(
    work: transfers.Work, start_s: float, share: float
) -> None:
    alone, moves = transfers.Alone(), shared.Shared()
    for way in (alone, moves):
        way.start("a", work, start_s)
    assert moves.ends_at_s("a") == alone.ends_at_s("a")
    now_s = start_s + share * work.duration_s
    assert moves.progress("a", now_s) == alone.progress("a", now_s)
    assert math.isfinite(moves.progress("a", now_s - 1e3).left_s)
