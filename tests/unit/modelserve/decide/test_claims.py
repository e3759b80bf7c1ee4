"""A count that somebody else wrote: left alone for a window, then taken back."""

from dataclasses import replace

from modelserve.decide import observation, record, scaling
from modelserve.testing import looks

Reason = record.Reason


def test_a_foreign_count_is_left_alone_for_a_window_and_then_taken_back() -> None:
    foreign = replace(looks.seen(looks.pod("a", load=8), looks.pod("b", load=8)), written_count=1)
    parameters = replace(looks.PARAMETERS, down=observation.DEFAULT_DOWN)
    first, past = scaling.decide(foreign, parameters, looks.busy(0.1), looks.NOW_S)
    assert (first.write, first.reason, first.conflict) == (False, Reason.CONFLICT, True)
    later, past = scaling.decide(foreign, parameters, past, looks.NOW_S + 60)
    assert later.force
    again, _ = scaling.decide(foreign, parameters, past, looks.NOW_S + 130)
    assert again.revisit_at_s is not None
    assert not again.force


def test_a_foreign_zero_is_taken_back_at_once_when_requests_are_held() -> None:
    decision = looks.decide(replace(looks.seen(held=1, count=0), written_count=2))
    assert (decision.force, decision.desired) == (True, 1)
