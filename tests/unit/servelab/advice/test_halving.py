"""Who keeps the promise goes on by price, who does not by wait, and the quickest always does."""

import math

from servelab.advice import halving
from servelab.advice.candidates import Candidate
from servelab.sweep.summary import Setup


def tried(name: str, cost: float, p95_s: float, served: float = 1.0) -> halving.Tried:
    figures = Setup({}, "committed", 1, cost, math.nan, p95_s, 1.0, served)
    return halving.Tried(Candidate((("name", name),)), figures)


CHEAP, GOOD, DEAR = tried("cheap", 1, 9), tried("good", 3, 1.5), tried("dear", 8, 0.1)
REFUSING = tried("refusing", 0.1, 0.1, served=0.5)
ALL = [CHEAP, REFUSING, DEAR, GOOD]


def test_who_keeps_the_promise_comes_first_and_the_cheapest_of_them() -> None:
    assert halving.ranked(ALL, 2) == [GOOD, DEAR, CHEAP, REFUSING]


def test_the_quickest_goes_on_whatever_its_price() -> None:
    assert halving.survivors(ALL, 20, 2) == [CHEAP.candidate, DEAR.candidate]


def test_no_more_go_on_than_there_is_room_for() -> None:
    assert len(halving.survivors(ALL, 2, 3)) == 3


def test_the_verdict_names_the_cheapest_and_the_next() -> None:
    verdict = halving.judge(ALL, 2)
    assert (verdict.advised, verdict.runner_up, verdict.quickest) == (GOOD, DEAR, DEAR)


def test_a_runner_up_came_to_something_else() -> None:
    twin = tried("twin", 3, 1.5)
    assert halving.judge([GOOD, twin], 2).runner_up is None


def test_of_what_keeps_no_promise_the_quickest_is_named() -> None:
    verdict = halving.judge(ALL, 0.01)
    assert (verdict.advised, verdict.quickest) == (None, DEAR)


def test_a_short_trace_is_run_whole_at_once() -> None:
    assert [stage.share for stage in halving.stages(60)] == [1.0]
    assert [stage.share for stage in halving.stages(3600)] == [0.25, 0.5, 1.0]
