"""What the autoscaler remembers, through a status and back."""

from modelserve.decide import drain, gaps, outlook, state, traffic, windows

KNOWN = traffic.Traffic(
    service_s=4.25,
    service_samples=120,
    bursts=outlook.Outlook(
        made_for=(60.0, 1.0), block_s=10, blocks=50, mean_per_s=2.5, square=80.0, product=20.0
    ),
    drained=drain.Drain(done=40.0, busy_s=20.0, full_since_s=990.0, ready=2, counted_s=999.0),
    idle=gaps.Gaps((0, 3, 1)),
    last_active_s=940.0,
)
FULL = state.ScalerState(
    known=KNOWN,
    recommendations=(windows.Recommended(950.0, 3),),
    steps=(windows.Step(995.0, -1),),
)


def through(past: state.ScalerState, saved_s: float, restored_s: float) -> state.ScalerState:
    saved = state.to_status(past, saved_s, arrival_rate_per_s=1.5, cold_start_s=60)
    return state.from_status(saved, restored_s)


def test_estimates_windows_and_gaps_survive_a_restart_as_ages() -> None:
    again = through(FULL, 1000.0, 5.0)
    assert (again.known.service_s, again.known.service_samples) == (4.25, 120)
    assert again.known.last_active_s == 5.0 - 60
    assert again.recommendations == (windows.Recommended(-45.0, 3),)
    assert again.steps == (windows.Step(0.0, -1),)
    assert again.known.idle == KNOWN.idle
    assert again.restored_at_s == 5.0


def test_what_was_learnt_of_bursts_and_drain_survives_too() -> None:
    again = through(FULL, 1000.0, 5.0)
    assert again.known.bursts.rate_per_s(9.0, 10.0) == KNOWN.bursts.rate_per_s(9.0, 10.0)
    assert again.known.drained.rate_per_s(8, 4.25) == KNOWN.drained.rate_per_s(8, 4.25)
    assert again.known.drained.full_since_s is None


def test_a_model_without_a_status_begins_with_nothing_but_caution() -> None:
    assert state.from_status(None, 7.0) == state.ScalerState(restored_at_s=7.0, piled=True)
