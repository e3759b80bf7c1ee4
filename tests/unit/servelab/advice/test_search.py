"""The search finds the cheapest that keeps the promise, on the whole trace, the same each time."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from modelserve import errors
from servelab.advice import candidates, search
from servelab.sweep import pool, task

QUESTION = search.Question(
    content={"models": [{"spec": {"scaling": {"maxReplicas": 8}}}]},
    trace="trace.csv",
    length_s=3600,
    promise_s=2.0,
    max_replicas=8,
    lines=task.Beside("", "trace.csv"),
)


def scaling(one: task.Task) -> dict[str, Any]:
    found = one.content["models"][0]["spec"]["scaling"]
    assert isinstance(found, dict)
    return found


def seconds(one: task.Task) -> float:
    found = one.content["models"][0]["traffic"][0].get("seconds", 3600)
    assert isinstance(found, float | int)
    return found


def answer(one: task.Task) -> task.Done:
    """Each replica that is always there costs one and halves the wait of 16 s."""
    least = scaling(one).get("minReplicas", 0)
    figures: dict[str, Any] = {"gpu_hours": 1.0 + least, "cost": None, "slo_attainment": 1.0}
    figures |= {"ttft_p95_s": 16 / 2**least, "requests": 10, "completed": 10}
    return task.Done(figures)


class Ran:
    """A pool that answers at once and keeps what it was given."""

    def __init__(self, answers: Callable[[task.Task], task.Done] = answer) -> None:
        self.tasks: list[task.Task] = []
        self._answers = answers

    def __call__(self, tasks: Sequence[task.Task]) -> pool.Results:
        return self._run(tasks)

    def _run(self, tasks: Sequence[task.Task]) -> Iterator[tuple[int, task.Done]]:
        self.tasks += tasks
        yield from reversed([(n, self._answers(one)) for n, one in enumerate(tasks)])


def test_the_cheapest_that_keeps_the_promise_is_advised_though_no_grid_holds_it() -> None:
    verdict, _ = search.Search(QUESTION, Ran(), batch=100).verdict()
    assert verdict.advised is not None
    assert verdict.advised.candidate.named()["minReplicas"] == 3


def test_the_settings_as_they_are_are_always_run_on_the_whole() -> None:
    ran = Ran()
    _, untouched = search.Search(QUESTION, ran, batch=100).verdict()
    assert untouched.candidate == candidates.UNTOUCHED
    assert untouched.came_to.ttft_p95_s == 16
    whole = [one for one in ran.tasks if seconds(one) == 3600]
    assert scaling(whole[0]).get("minReplicas") != 0
    assert {"maxReplicas": 8} in [scaling(one) for one in whole]


def test_most_runs_are_of_the_beginning() -> None:
    ran = Ran()
    search.Search(QUESTION, ran, batch=100).verdict()
    lengths_s = [seconds(one) for one in ran.tasks]
    assert lengths_s.count(900) > lengths_s.count(3600) > 0


def test_equal_questions_have_equal_answers() -> None:
    answers = [search.Search(QUESTION, Ran(), batch=n).verdict()[0] for n in (1, 100)]
    assert answers[0] == answers[1]


def test_a_used_up_budget_ends_the_first_stages_but_not_the_last() -> None:
    ran = Ran()
    searching = search.Search(QUESTION, ran, batch=4, left_s=lambda: 0.0)
    verdict, _ = searching.verdict()
    assert searching.cut
    assert len(ran.tasks) < 20
    assert verdict.quickest.came_to.ttft_p95_s <= 16


def test_what_cannot_be_run_is_told() -> None:
    ran = Ran(lambda one: task.Done(None, "the trace is bad"))
    with pytest.raises(errors.InputError, match="the trace is bad"):
        search.Search(QUESTION, ran).verdict()


def test_progress_never_exceeds_its_total() -> None:
    told: list[tuple[int, int]] = []
    search.Search(QUESTION, Ran(), batch=7, progress=lambda *far: told.append(far)).verdict()
    assert all(done <= total for done, total in told)
    assert told[-1][0] == len(told)


def seeded(one: task.Task) -> task.Done:
    """As above, but in the draw of seed 1 all wait twice as long."""
    done = answer(one)
    assert done.figures is not None
    return task.Done(
        {**done.figures, "ttft_p95_s": done.figures["ttft_p95_s"] * (1 + one.seed % 2)}
    )


def test_with_draws_a_promise_is_kept_in_the_worst_of_them() -> None:
    question = dataclasses.replace(QUESTION, draws=3)
    ran = Ran(seeded)
    verdict, _ = search.Search(question, ran, batch=100).verdict()
    assert verdict.advised is not None
    assert verdict.advised.candidate.named()["minReplicas"] == 4
    assert verdict.advised.came_to.ttft_p95_s == 2.0
    assert verdict.advised.came_to.seeds == 3
    assert {one.seed for one in ran.tasks} == {0, 1, 2}


def test_draws_are_of_blocks_of_five_minutes_or_of_a_third_of_what_is_shorter() -> None:
    def blocks_s(length_s: float) -> set[float]:
        ran = Ran()
        search.Search(dataclasses.replace(QUESTION, draws=1, length_s=length_s), ran).verdict()
        traffic = [one.content["models"][0]["traffic"][0] for one in ran.tasks]
        return {each["resampleSeconds"] for each in traffic}

    assert blocks_s(7200) == {300}
    assert blocks_s(600) == {200}


def test_a_draw_in_which_few_are_served_keeps_no_promise() -> None:
    def some(one: task.Task) -> task.Done:
        done = answer(one)
        assert done.figures is not None
        return task.Done({**done.figures, "completed": 10 - 5 * (one.seed == 2)})

    question = dataclasses.replace(QUESTION, draws=3)
    verdict, _ = search.Search(question, Ran(some), batch=100).verdict()
    assert verdict.advised is None
