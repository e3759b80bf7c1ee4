"""The hand-shake to zero, whatever happens at whichever step."""

from hypothesis import given
from hypothesis import strategies as st

from modelserve.decide import settle

PODS = ("a", "b")


def asked() -> settle.Settle:
    return settle.begin(settle.Settle(), PODS, "f1", 100.0)[0]


def writing() -> settle.Settle:
    return settle.answered(asked(), True, PODS, True, 100.1)[0]


def test_zero_wanted_asks_for_a_fence_around_all_pods() -> None:
    now, acts = settle.begin(settle.Settle(), ["b", "a"], "f1", 100.0)
    assert acts == (settle.AskFence("f1", PODS),)
    assert now.busy


def test_a_second_wish_while_one_is_under_way_does_nothing() -> None:
    assert settle.begin(asked(), PODS, "f2", 100.1) == (asked(), ())


def test_granted_writes_zero_before_the_fence_may_lapse() -> None:
    _, acts = settle.answered(asked(), True, PODS, True, 100.1)
    assert acts == (settle.WriteZero("f1", 102.5),)


def test_a_refusal_takes_the_fence_back_and_waits_longer_each_time() -> None:
    now, waits = settle.Settle(), []
    for _ in range(7):
        start = now.retry_real_s or 0.0
        now, _ = settle.begin(now, PODS, "f", start)
        now, acts = settle.answered(now, False, PODS, True, start)
        assert acts == (settle.Unfence("f"),)
        waits.append((now.retry_real_s or 0.0) - start)
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_nothing_is_asked_before_the_retry_is_due() -> None:
    refused, _ = settle.answered(asked(), False, PODS, True, 100.1)
    assert settle.begin(refused, PODS, "f2", 100.5)[1] == ()
    assert settle.begin(refused, PODS, "f2", 101.2)[1] != ()


def test_a_request_that_came_meanwhile_gives_zero_up() -> None:
    assert settle.answered(asked(), True, PODS, False, 100.1)[1] == (settle.Unfence("f1"),)


def test_a_pod_that_is_not_fenced_gives_zero_up() -> None:
    assert settle.answered(asked(), True, (*PODS, "c"), True, 100.1)[1] == (settle.Unfence("f1"),)


def test_a_grant_that_may_lapse_before_the_write_is_not_used() -> None:
    assert settle.answered(asked(), True, PODS, True, 102.5)[1] == (settle.Unfence("f1"),)


def test_a_write_that_is_done_leaves_the_fence_to_lapse() -> None:
    assert settle.wrote(writing(), settle.Outcome.DONE, 100.2) == (settle.Settle(), ())


def test_a_write_that_failed_takes_the_fence_back() -> None:
    assert settle.wrote(writing(), settle.Outcome.FAILED, 100.2)[1] == (settle.Unfence("f1"),)


def test_an_unknown_result_is_read_again_before_the_fence_is_taken_back() -> None:
    unsure, acts = settle.wrote(writing(), settle.Outcome.UNKNOWN, 100.2)
    assert acts == (settle.ReadCount(),)
    assert settle.read(unsure, None, 100.3) == (unsure, (settle.ReadCount(),))
    assert settle.read(unsure, 2, 100.4)[1] == (settle.Unfence("f1"),)
    assert settle.read(unsure, 0, 100.4) == (settle.Settle(), ())


def test_an_answer_out_of_turn_does_nothing() -> None:
    idle = settle.Settle()
    assert settle.answered(idle, True, PODS, True, 0.0) == (idle, ())
    assert settle.wrote(idle, settle.Outcome.DONE, 0.0) == (idle, ())
    assert settle.read(idle, 0, 0.0) == (idle, ())


EVENTS = ["begin", "grant", "refuse", "done", "fail", "unknown", "read0", "read2", "none"]


@given(st.lists(st.sampled_from(EVENTS)))
def test_zero_is_only_written_under_a_grant_and_each_lost_fence_is_taken_back(
    events: list[str],
) -> None:
    now, fenced, now_real_s = settle.Settle(), "", 0.0
    for index, event in enumerate(events):
        now_real_s += 0.4
        now, acts = play(now, event, f"f{index}", now_real_s)
        for act in acts:
            if isinstance(act, settle.AskFence):
                assert not fenced
                fenced = act.fence_id
            if isinstance(act, settle.WriteZero):
                assert event == "grant"
                assert act.fence_id == fenced
            if isinstance(act, settle.Unfence):
                assert act.fence_id == fenced
        if not now.busy:
            fenced = ""


def play(now: settle.Settle, event: str, fence_id: str, now_real_s: float) -> settle.Result:
    outcomes = {"done": settle.Outcome.DONE, "fail": settle.Outcome.FAILED}
    counts: dict[str, int | None] = {"read0": 0, "read2": 2, "none": None}
    if event == "begin":
        return settle.begin(now, PODS, fence_id, now_real_s)
    if event in ("grant", "refuse"):
        return settle.answered(now, event == "grant", PODS, True, now_real_s)
    if event in counts:
        return settle.read(now, counts[event], now_real_s)
    return settle.wrote(now, outcomes.get(event, settle.Outcome.UNKNOWN), now_real_s)
