"""Which candidates go on from one part of a trace to a longer one, and which wins. Pure.

Successive halving: all are tried on the beginning of the trace, the better ones on more of it, and
only what was run on the whole is ever advised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from servelab.advice.candidates import Candidate
from servelab.sweep.summary import Setup


@dataclass(frozen=True, slots=True)
class Stage:
    """How much of the trace is run, and how many candidates at most."""

    share: float
    most: int


# A quarter for all, half for a dozen, the whole for five.
STAGES = (Stage(0.25, 1000), Stage(0.5, 12), Stage(1.0, 5))
WHOLE = (Stage(1.0, 1000),)
# A shorter trace has no beginning that says anything about the rest.
SHORT_S = 900.0


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate and what it came to."""

    candidate: Candidate
    came_to: Setup


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cheapest that keeps the promise and the next one, or None; and the quickest of all."""

    advised: Tried | None
    runner_up: Tried | None
    quickest: Tried


def stages(length_s: float) -> Sequence[Stage]:
    """For a trace of this length."""
    return STAGES if length_s >= SHORT_S else WHOLE


def ranked(tried: Sequence[Tried], promise_s: float) -> Sequence[Tried]:
    """Those that keep the promise by their price, then the others by their wait. Stable."""

    def rank(each: Tried) -> tuple[bool, float, float]:
        price, wait_s = each.came_to.price, each.came_to.wait_s
        kept = wait_s <= promise_s
        return (not kept, *((price, wait_s) if kept else (wait_s, price)))

    return sorted(tried, key=rank)


def survivors(tried: Sequence[Tried], promise_s: float, most: int) -> Sequence[Candidate]:
    """The best, and always the quickest: on more of the trace it may be the only one that keeps."""
    order = [each.candidate for each in ranked(tried, promise_s)]
    quickest = ranked(tried, -1.0)[0].candidate
    kept = order[: most - 1] if quickest not in order[:most] else order[:most]
    return kept if quickest in kept else [*kept, quickest]


def judge(tried: Sequence[Tried], promise_s: float) -> Verdict:
    """Of candidates that were run on the whole trace. The runner-up did come to something else."""
    order = ranked(tried, promise_s)
    kept = [each for each in order if each.came_to.wait_s <= promise_s]
    quickest = ranked(tried, -1.0)[0]
    if not kept:
        return Verdict(None, None, quickest)
    best = kept[0]
    other = [each for each in kept if _figures(each) != _figures(best)]
    return Verdict(best, other[0] if other else None, quickest)


def _figures(one: Tried) -> tuple[float, float]:
    return one.came_to.price, one.came_to.wait_s
