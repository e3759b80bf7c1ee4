"""What is done about replicas that are no supply: broken ones are deleted, late ones replaced."""

from modelserve.api import spec as api
from modelserve.decide import situation, state, wording
from modelserve.decide.verdict import Verdict

# Between two deletions of stuck pods of one model, doubling while pods keep breaking.
DELETE_PAUSE_S = 30.0
DELETE_PAUSE_MOST_S = 600.0


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


def deletions(
    view: situation.Situation, past: state.ScalerState
) -> tuple[tuple[str, ...], state.ScalerState]:
    """At most one crash-looping or overdue pod at a time, with a pause that doubles.

    The same one is named until it is seen to go, so that a delete that failed is tried again.
    """
    broken, now_s = view.supply.broken, view.now_s
    if past.deleting in broken and view.parameters.mode is not api.Mode.DRY_RUN:
        return (past.deleting,), past
    if not broken:
        if past.deleted_times and now_s > (past.deleted_at_s or 0.0) + DELETE_PAUSE_MOST_S:
            past = past._replace(deleted_times=0)
        return (), past
    due_s = next_deletion_s(past)
    early = due_s is not None and now_s < due_s
    if early or view.parameters.mode is api.Mode.DRY_RUN:
        return (), past
    times = min(past.deleted_times + 1, 10)
    return broken[:1], past._replace(deleting=broken[0], deleted_at_s=now_s, deleted_times=times)


def next_deletion_s(past: state.ScalerState) -> float | None:
    """When the next broken pod may be deleted; None if none was before."""
    if past.deleted_at_s is None:
        return None
    pause_s = DELETE_PAUSE_S * 2.0 ** max(0, past.deleted_times - 1)
    return past.deleted_at_s + min(DELETE_PAUSE_MOST_S, pause_s)
