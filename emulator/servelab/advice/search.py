"""Searches: every candidate is a scenario, every scenario a run of the code that runs live."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modelserve import errors
from servelab.advice import candidates, halving
from servelab.advice.candidates import Candidate
from servelab.advice.halving import Tried
from servelab.sim.checking import Place
from servelab.sweep import pool, settings, summary, task

Progress = Callable[[int, int], None]
Left = Callable[[], float]
SCALING = (*settings.ONLY_MODEL, "scaling")

# Bursts of the public traces last minutes: blocks of five keep them whole. A shorter trace has at
# least three.
BLOCK_S = 300.0
BLOCKS = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A scenario with one model, its trace, and what p95 of the TTFT may be, in seconds.

    With ``draws`` so many others like the trace are drawn from it, and the promise is for each.
    """

    content: Mapping[str, Any]
    trace: str
    length_s: float
    promise_s: float
    max_replicas: int
    lines: task.Beside
    draws: int = 0

    def tasks(self, candidate: Candidate, share: float, seed: int) -> Sequence[task.Task]:
        """The runs of a candidate on the beginning of the trace."""
        return [self._task(candidate, share, seed + n) for n in range(max(1, self.draws))]

    def _task(self, candidate: Candidate, share: float, seed: int) -> task.Task:
        length_s = self.length_s * share
        cut = {} if share >= 1 else {"seconds": length_s}
        if self.draws:
            cut["resampleSeconds"] = min(BLOCK_S, length_s / BLOCKS)
        content: Mapping[str, Any] = self.content
        traffic = [{"trace": self.trace, **cut}]
        given: list[tuple[Place, Any]] = [((*settings.ONLY_MODEL[:2], "traffic"), traffic)]
        given.append((("objective", "ttftSeconds"), self.promise_s))
        if share < 1:
            given.append((("stepJitter",), 0))  # faster, and near enough to choose by
        given += [((*SCALING, *name.split(".")), value) for name, value in candidate.fields]
        for place, value in given:
            content = settings.applied(content, place, value)
        return task.Task(content, "committed", seed, self.lines)


@dataclass(slots=True)
class Search:
    """One search. ``left_s`` tells how much of a budget is left; infinite without one.

    Without a budget equal input gives equal answers. With one, candidates of the first stages are
    left out once it is used up (``cut`` is set); what is advised is always run on the whole trace.
    """

    question: Question
    run: pool.Run
    batch: int = 1
    left_s: Left = lambda: math.inf
    progress: Progress = lambda done, total: None
    seed: int = 0
    runs: int = 0
    cut: bool = False
    _expected: int = field(default=0)

    def verdict(self) -> tuple[halving.Verdict, Tried]:
        """The verdict, and what the untouched settings came to. Raises InputError."""
        question = self.question
        going: Sequence[Candidate] = candidates.grid(question.max_replicas)
        plan = halving.stages(question.length_s)
        near = len(candidates.steps(going[0], question.max_replicas))
        several = max(1, question.draws)
        self._expected = several * (sum(min(stage.most, len(going)) for stage in plan) + near)
        for number, stage in enumerate(plan):
            last = number == len(plan) - 1
            if last and candidates.UNTOUCHED not in going:
                going = [*going, candidates.UNTOUCHED]
            tried = list(self._tried(going, stage.share, optional=not last or len(plan) == 1))
            if not last:
                most = plan[number + 1].most
                going = halving.survivors(tried, question.promise_s, most)
        best = halving.ranked(tried, question.promise_s)[0].candidate
        known = {each.candidate for each in tried}
        near_best = candidates.steps(best, question.max_replicas)
        steps = [each for each in near_best if each not in known]
        tried += self._tried(steps, 1.0, optional=True)
        untouched = next(each for each in tried if each.candidate == candidates.UNTOUCHED)
        return halving.judge(tried, question.promise_s), untouched

    def _tried(
        self, going: Sequence[Candidate], share: float, *, optional: bool
    ) -> Iterator[Tried]:
        """Run them, a batch at a time; an optional batch only while there is time."""
        for first in range(0, len(going), self.batch):
            if optional and self.left_s() <= 0 and (first or (share >= 1 and self.runs)):
                self.cut = True
                return
            part = going[first : first + self.batch]
            sent = [self.question.tasks(each, share, self.seed) for each in part]
            results: dict[int, task.Done] = {}
            for number, done in self.run([one for tasks in sent for one in tasks]):
                if done.figures is None:
                    raise errors.InputError(done.failure)
                results[number] = done
                self.runs += 1
                self.progress(self.runs, max(self.runs, self._expected))
            figures = (results[number].figures or {} for number in range(len(results)))
            for each, tasks in zip(part, sent, strict=True):
                yield Tried(each, _came_to(each, list(itertools.islice(figures, len(tasks)))))


def _came_to(candidate: Candidate, runs: Sequence[summary.Figures]) -> summary.Setup:
    """Means of the runs, but wait and share of the served of the worst: a promise is for each."""
    means = summary.setup(candidate.named(), "committed", runs)
    if len(runs) < 2:
        return means
    alone = [summary.setup({}, "committed", [run]) for run in runs]
    worst = max(alone, key=lambda each: (each.ttft_p95_s != each.ttft_p95_s, each.ttft_p95_s))
    served = min(each.served for each in alone)
    return replace(means, ttft_p95_s=worst.ttft_p95_s, served=served)
