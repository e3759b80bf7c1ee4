"""What is tried: the settings as they are first, then a grid within the bounds."""

import pytest

from servelab.advice import candidates


@pytest.mark.parametrize("most", [1, 2, 3, 16, 1000])
def test_no_candidate_is_above_the_most_replicas_or_there_twice(most: int) -> None:
    found = candidates.grid(most)
    assert found[0] == candidates.UNTOUCHED
    assert len(set(found)) == len(found) < 100
    floors = {each.named().get("minReplicas", 0) for each in found}
    assert {0, most} <= floors <= set(range(most + 1))


def test_steps_change_one_field_and_stay_within_the_bounds() -> None:
    best = candidates.Candidate((("minReplicas", 4), ("targetUtilization", 0.8)))
    for each in candidates.steps(best, 4):
        changed = [n for n, value in each.named().items() if best.named().get(n) != value]
        assert len(changed) == 1
        assert 0 <= each.named()["minReplicas"] <= 4


def test_one_replica_is_not_activated_twice() -> None:
    found = candidates.steps(candidates.UNTOUCHED, 1)
    assert not [each for each in found if "activationReplicas" in each.named()]
