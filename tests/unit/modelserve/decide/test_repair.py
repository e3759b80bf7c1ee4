"""Replicas that are no supply: broken ones go one by one, late ones are replaced."""

from modelserve.decide import observation, scaling
from modelserve.testing import looks

State = observation.ReplicaState


def test_broken_replicas_are_deleted_one_by_one() -> None:
    both, rest = (
        looks.seen(looks.pod("a", State.STUCK), looks.pod("b", State.STUCK)),
        looks.seen(looks.pod("b", State.STUCK)),
    )
    past, deleted = looks.busy(), []
    for after_s, what in ((0, both), (10, both), (20, rest), (31, rest)):
        decision, past = scaling.decide(what, looks.PARAMETERS, past, looks.NOW_S + after_s)
        deleted.append(decision.delete_uids)
    assert deleted == [("a",), ("a",), (), ("b",)]


def test_a_crash_loop_never_makes_the_count_grow() -> None:
    assert looks.decide(looks.seen(looks.pod("a", State.STUCK), held=1)).desired == 1


def test_a_late_replica_is_kept_and_replaced_once() -> None:
    late = looks.pod("a", State.STARTING, created_s=800.0)
    assert looks.decide(looks.seen(late, held=1)).desired == 2
    later = looks.pod("b", State.STARTING, created_s=810.0)
    assert looks.decide(looks.seen(late, later, held=1)).desired == 2
