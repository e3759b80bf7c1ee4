"""A sweep runs what is not done, wherever it runs, and gives the same rows in the same order."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from modelserve import errors
from servelab.sim import reading
from servelab.sweep import plan, pool, settings, surroundings, sweeping, task

LINES = task.Beside("", "small.yaml")


def planned(document: reading.Document, *texts: str) -> Sequence[plan.Point]:
    fields = [settings.parse(text, document.content) for text in texts]
    return plan.points(document, fields, ["committed"])


def backwards(tasks: Sequence[task.Task]) -> pool.Results:
    """Gives back the last task first, its seed as its cost."""
    for number, one in reversed(list(enumerate(tasks))):
        yield number, task.Done({"cost": one.seed})


def test_rows_are_in_the_order_of_the_points(document: reading.Document) -> None:
    points = planned(document, "seed=1,2,3")
    told: list[int] = []
    figures = sweeping.sweep(points, LINES, "", sweeping.Forgetful(), backwards, told.append)
    assert sweeping.rows(points, figures) == [{"seed": n, "cost": n} for n in (1, 2, 3)]
    assert told == [0, 1, 2, 3]


def test_what_is_done_is_not_run_again(document: reading.Document) -> None:
    points = planned(document, "seed=1,2,3")
    memory = sweeping.Forgetful()
    memory.add(points[1].key("code"), {"cost": 99})
    ran: list[int] = []

    def run(tasks: Sequence[task.Task]) -> pool.Results:
        ran.extend(one.seed for one in tasks)
        return backwards(tasks)

    figures = sweeping.sweep(points, LINES, "code", memory, run)
    assert ran == [1, 3]
    assert [each["cost"] for each in figures] == [1, 99, 3]


def test_a_point_that_cannot_be_run_is_named(document: reading.Document) -> None:
    def fail(tasks: Sequence[task.Task]) -> pool.Results:
        yield 0, task.Done(None, "the trace is bad")

    with pytest.raises(errors.InputError, match=r"seed=1, policy committed: the trace is bad"):
        sweeping.sweep(planned(document, "seed=1"), LINES, "", sweeping.Forgetful(), fail)


def test_processes_and_this_one_come_to_the_same(document: reading.Document) -> None:
    tasks = [
        task.Task(point.content, point.policy, point.seed, LINES)
        for point in planned(document, "scaling.minReplicas=0,1")
    ]
    here = list(pool.local(tasks, 1))
    assert all(done.figures for _, done in here)
    assert sorted(pool.local(tasks, 2), key=lambda each: each[0]) == here


def test_a_task_tells_its_failure_in_a_sentence(document: reading.Document) -> None:
    (point,) = planned(document, "models.0.traffic=[{trace: nowhere.csv}]")
    done = task.Task(point.content, "committed", 0, LINES).run()
    assert done.figures is None
    assert "nowhere.csv, which is not there" in done.failure


def test_dask_comes_to_the_same(document: reading.Document) -> None:
    pytest.importorskip("distributed")
    points = planned(document, "scaling.minReplicas=0,1")
    tasks = [task.Task(each.content, each.policy, each.seed, LINES) for each in points]
    there = sorted(pool.dask(tasks, "", 1), key=lambda each: each[0])
    assert there == list(pool.local(tasks, 1))


def test_a_digest_knows_the_code_and_what_stands_in_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    contents = [{"models": [{"traffic": [{"trace": "t.csv"}]}]}]
    found = set()
    for text in ("a", "b", "a"):
        trace.write_text(text)
        found.add(surroundings.digest(contents, task.Beside(str(tmp_path), "s.yaml")))
    assert len(found) == 2
    assert surroundings.code() == surroundings.code()
