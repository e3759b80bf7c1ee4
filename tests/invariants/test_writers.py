"""Invariant 10: somebody else writes the count, and still one decides and nothing oscillates."""

import itertools
import math
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.decide import claims, observation, record, scaling, state

HOURS_S = 8 * 3600.0
PARAMETERS = observation.Parameters(slots=8, cold_start_s=30, service_s=2, min_replicas=1)
FEW = settings(max_examples=15, deadline=None)

Writer = Callable[[float, int], int | None]


def played(
    writer: Writer, every_s: float, until_s: float = 1500.0, held: int = 0
) -> tuple[list[tuple[float, str, int]], list[record.Decision]]:
    """Our operator and another writer on one count: who wrote what when, and what we said."""
    count = written = PARAMETERS.min_replicas
    past, writes, said = state.ScalerState(), [], []
    now_s = 0.0
    while now_s < until_s:
        now_s += every_s
        theirs = writer(now_s, count)
        if theirs is not None and theirs != count:
            count = theirs
            writes.append((now_s, "theirs", count))
        seen = observation.Observation(
            tuple(pod(number) for number in range(count)),
            observation.GatewaySignal(live_gateways=1, held=held if count == 0 else 0),
            count,
            written,
        )
        decision, past = scaling.decide(seen, PARAMETERS, past, now_s)
        said.append(decision)
        if decision.write and (decision.changes or decision.force):
            assert decision.force or not decision.conflict, "a foreign count is not touched"
            count = written = decision.desired
            writes.append((now_s, "ours", count))
    return writes, said


def pod(number: int) -> observation.Replica:
    ready = observation.ReplicaState.READY
    return observation.Replica(
        f"p{number}", "", ready, 0.0, ready_since_s=0.0, waiting=0.0, running=0.0
    )


@given(
    wanted=st.integers(2, 8),
    every_s=st.sampled_from([15.0, 60.0]),
    sync_s=st.sampled_from([15.0, 45.0, 120.0]),
)
@FEW
def test_against_an_hpa_that_never_gives_in_the_writes_get_rare(
    wanted: int, every_s: float, sync_s: float
) -> None:
    """Each time it is taken back the wait doubles, up to an hour.

    It writes when it looks; until then, the count may be ours again for a few looks of ours.
    """
    synced: set[int] = set()

    def hpa(now_s: float, count: int) -> int | None:
        if (sync := int(now_s // sync_s)) in synced:
            return None
        synced.add(sync)
        return wanted

    writes, said = played(hpa, every_s, HOURS_S)
    ours = [at_s for at_s, who, _ in writes if who == "ours"]
    waits_s = [after - before for before, after in itertools.pairwise(ours)]
    assert 3 <= len(ours) <= math.log2(3600 / 60) + HOURS_S / 3600 + 2
    # It may look at once or a while later, which blurs equal waits.
    assert all(after >= before - sync_s for before, after in itertools.pairwise(waits_s))
    assert max(waits_s) <= claims.LONGEST_WAIT_S + sync_s + every_s
    assert all(each.conflict for each in said[2:] if each.current == wanted)


@given(at_s=st.floats(10, 1200), wanted=st.integers(2, 8))
@FEW
def test_one_foreign_write_is_told_and_taken_back_once(at_s: float, wanted: int) -> None:
    done = iter([wanted])

    def writer(now_s: float, count: int) -> int | None:
        return next(done, None) if now_s >= at_s else None

    writes, said = played(writer, 5.0)
    assert [who for _, who, _ in writes] == ["theirs", "ours"]
    assert writes[1][0] - writes[0][0] <= PARAMETERS.down.window_s + 5
    assert record.Reason.CONFLICT in {each.reason for each in said}
    assert not said[-1].conflict


@given(at_s=st.floats(10, 1200))
@FEW
def test_a_foreign_zero_under_held_requests_is_taken_back_at_once(at_s: float) -> None:
    done = iter([0])

    def writer(now_s: float, count: int) -> int | None:
        return next(done, None) if now_s >= at_s else None

    writes, _ = played(writer, 5.0, held=1)
    assert [(who, count) for _, who, count in writes[:2]] == [("theirs", 0), ("ours", 1)]
    assert writes[1][0] == writes[0][0]


@given(values=st.lists(st.integers(0, 8), min_size=1, max_size=20), every_s=st.floats(5, 60))
@FEW
def test_whoever_writes_whatever_ours_is_the_last_word(values: list[int], every_s: float) -> None:
    """After the last foreign write the count comes back to what we want, and stays."""
    theirs = iter(values)
    _, said = played(lambda now_s, count: next(theirs, None), every_s, 4000.0)
    assert (said[-1].current, said[-1].desired, said[-1].conflict) == (1, 1, False)
