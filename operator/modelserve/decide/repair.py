"""What is done about replicas that are no supply: broken ones are deleted, late ones replaced."""

from typing import NamedTuple

from modelserve.api import spec as api
from modelserve.decide import situation, wording
from modelserve.decide.verdict import Verdict

# Between two deletions of stuck pods of one model, doubling while pods keep breaking.
DELETE_PAUSE_S = 30.0
DELETE_PAUSE_MOST_S = 600.0


class Deletions(NamedTuple):
    """The stuck pods that were deleted."""

    uid: str = ""  # of the one that is to go
    at_s: float | None = None  # when that was first asked for
    times: int = 0  # in a row, without a time when nothing was broken


def replace_late(verdict: Verdict, view: situation.Situation) -> Verdict:
    """Replicas far later than predicted are kept, and replaced by as many as there are ready ones.

    So one slow node costs nothing but a spare; where none is ready yet, the prediction may well be
    what is wrong, and one more is enough to find out.
    """
    late, kept = len(view.supply.late), view.kept
    if not late or verdict.replicas == 0 or verdict.replicas < kept:
        return verdict
    extra = min(late, max(1, view.supply.ready))
    return verdict.adding(
        lambda: f"{wording.replicas(late)} far later than predicted, replaced",
        replicas=verdict.replicas + extra,
    )


def deletions(view: situation.Situation, past: Deletions) -> tuple[tuple[str, ...], Deletions]:
    """At most one crash-looping or overdue pod at a time, with a pause that doubles.

    The same one is named until it is seen to go, so that a delete that failed is tried again.
    """
    broken, now_s = view.supply.broken, view.now_s
    if past.uid in broken and view.parameters.mode is not api.Mode.DRY_RUN:
        return (past.uid,), past
    if not broken:
        if past.times and now_s > (past.at_s or 0.0) + DELETE_PAUSE_MOST_S:
            past = past._replace(times=0)
        return (), past
    due_s = next_deletion_s(past)
    early = due_s is not None and now_s < due_s
    if early or view.parameters.mode is api.Mode.DRY_RUN:
        return (), past
    return broken[:1], Deletions(broken[0], now_s, min(past.times + 1, 10))


def next_deletion_s(past: Deletions) -> float | None:
    """When the next broken pod may be deleted; None if none was before."""
    if past.at_s is None:
        return None
    pause_s = DELETE_PAUSE_S * 2.0 ** max(0, past.times - 1)
    return past.at_s + min(DELETE_PAUSE_MOST_S, pause_s)
