"""A transfer alone on its links."""

import pytest

from servelab.timing import jitter, transfers


@pytest.fixture
def alone() -> transfers.Alone:
    moves = transfers.Alone()
    moves.start("a", transfers.Work(10.0, 500.0), 100.0)
    return moves


def test_it_ends_after_its_duration(alone: transfers.Alone) -> None:
    assert alone.ends_at_s("a") == 110.0


def test_others_do_not_move_its_end(alone: transfers.Alone) -> None:
    alone.start("b", transfers.Work(10.0, 500.0, (transfers.Stage(500.0, ("registry",)),)), 101.0)
    assert alone.ends_at_s("a") == 110.0
    assert alone.changes == 0


def test_progress_is_linear(alone: transfers.Alone) -> None:
    assert alone.progress("a", 104.0) == transfers.Progress(200.0, 500.0, 50.0, 6.0)


def test_progress_stays_within_its_bounds(alone: transfers.Alone) -> None:
    assert alone.progress("a", 0.0).done_bytes == 0.0
    assert alone.progress("a", 1e6).left_s == 0.0


def test_a_stopped_transfer_is_unknown(alone: transfers.Alone) -> None:
    alone.stop("a")
    with pytest.raises(KeyError):
        alone.ends_at_s("a")


def test_jitter_is_the_same_for_the_same_pod_and_part() -> None:
    assert jitter.factor("uid", "WarmUp") == jitter.factor("uid", "WarmUp")
    assert jitter.factor("uid", "WarmUp") != jitter.factor("uid", "WeightLoad")


def test_jitter_keeps_predictions_within_five_per_cent() -> None:
    factors = [jitter.factor(str(number), "x") for number in range(2000)]
    assert 0.95 < min(factors) < 0.98 < 1.02 < max(factors) < 1.05
    assert sum(factors) / len(factors) == pytest.approx(1.0, abs=0.002)
