"""Holding: every request ends exactly once, in order, and never in a herd."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from modelserve.api import wire
from modelserve.decide import fleet, holding
from modelserve.decide.holding import Refusal, Reject, Send

TERMS = holding.Terms(slots=4, max_requests=3, max_bytes=1000, max_real_s=60.0)
CLOSED = holding.Terms(closed=Refusal.SCALED_TO_ZERO)


def replica(uid: str, **changes: bool) -> fleet.Replica:
    return fleet.Replica(uid, **{"ready": True, **changes}, address="h:1")  # type: ignore[arg-type]


def machine(*replicas: fleet.Replica, terms: holding.Terms = TERMS) -> holding.Holding:
    made = holding.Holding(terms, time_scale=10.0)
    made.update(terms, replicas, 0.0)
    return made


def sent(effects: Sequence[holding.Effect]) -> list[tuple[int, str]]:
    return [(e.request_id, e.pod_uid) for e in effects if isinstance(e, Send)]


def test_a_request_with_room_is_sent_at_once() -> None:
    assert machine(replica("a")).arrive(1, 10, 0.0) == (Send(1, "a"),)


def test_requests_spread_over_the_least_loaded_replicas() -> None:
    model = machine(replica("a"), replica("b"))
    assert [sent(model.arrive(n, 10, 0.0)) for n in range(4)] == [
        [(0, "a")],
        [(1, "b")],
        [(2, "a")],
        [(3, "b")],
    ]


def test_a_replica_that_becomes_ready_gets_no_more_than_its_cap() -> None:
    model = machine(terms=holding.Terms(slots=4))
    for n in range(100):
        model.arrive(n, 1, 0.0)
    assert sent(model.update(TERMS, [replica("a")], 1.0)) == [(n, "a") for n in range(5)]
    assert model.held == 95


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        pytest.param(holding.Terms(max_requests=1), "count", id="count"),
        pytest.param(holding.Terms(max_bytes=15), "bytes", id="bytes"),
    ],
)
def test_past_the_holds_bounds_a_request_is_refused_and_still_demand(
    terms: holding.Terms, why: str
) -> None:
    model = machine(terms=terms)
    model.arrive(1, 10, 0.0)
    assert model.arrive(2, 10, 0.0) == (Reject(2, Refusal.FULL),)
    assert model.demand("n", "m", 29.0).refused_recently == 1
    assert model.demand("n", "m", 30.0).refused_recently == 0


def test_a_hold_expires_after_its_seconds() -> None:
    model = machine()
    model.arrive(1, 10, 0.0)
    model.arrive(2, 10, 5.0)
    assert model.next_wake() == 60.0
    assert model.advance(60.0) == [Reject(1, Refusal.EXPIRED)]
    assert (model.next_wake(), model.held, model.held_bytes) == (65.0, 1, 10)


def test_manual_at_zero_refuses_everything_also_what_is_held() -> None:
    model = machine()
    model.arrive(1, 10, 0.0)
    assert model.update(CLOSED, (), 1.0) == [Reject(1, Refusal.SCALED_TO_ZERO)]
    assert model.arrive(2, 10, 1.0) == (Reject(2, Refusal.SCALED_TO_ZERO),)


def test_a_deleted_model_refuses_what_is_held_and_lets_the_rest_finish() -> None:
    model = machine(replica("a"), terms=holding.Terms(slots=1))
    for n in range(3):
        model.arrive(n, 10, 0.0)
    gone = holding.Terms(closed=Refusal.DELETED)
    assert model.update(gone, (), 1.0) == [Reject(2, Refusal.DELETED)]
    assert model.in_flight == 2
    model.complete(0, 2.0)
    assert model.demand("n", "m", 2.0).in_flight == {"a": 1}


@pytest.mark.parametrize("change", ["leaving", "not ready", "no address"])
def test_a_replica_that_must_not_be_used_gets_nothing(change: str) -> None:
    unusable = {
        "leaving": replica("a", leaving=True),
        "not ready": replica("a", ready=False),
        "no address": fleet.Replica("a", ready=True),
    }
    assert machine(unusable[change]).arrive(1, 10, 0.0) == []


def test_a_probe_admits_a_starting_replica() -> None:
    model = machine(replica("a", ready=False))
    assert model.probe_targets() == frozenset()
    model.arrive(1, 10, 0.0)
    assert model.probe_targets() == {"a"}
    assert sent(model.admit("a", 1.0)) == [(1, "a")]
    assert model.demand("n", "m", 1.0).admitted == ("a",)
    assert model.probe_targets() == frozenset()


def test_an_admitted_replica_that_turned_ready_is_no_longer_reported_as_admitted() -> None:
    model = machine(replica("a", ready=False))
    model.admit("a", 0.0)
    model.update(TERMS, [replica("a")], 1.0)
    assert model.admitted == ()
    assert sent(model.arrive(1, 10, 1.0)) == [(1, "a")]


def test_a_replica_that_kubernetes_calls_unready_again_must_be_probed_anew() -> None:
    model = machine(replica("a"))
    model.update(TERMS, [replica("a", ready=False)], 1.0)
    model.arrive(1, 10, 1.0)
    assert model.probe_targets() == {"a"}


def test_a_bounced_request_goes_elsewhere_and_its_replica_is_probed() -> None:
    model = machine(replica("a"), replica("b"))
    model.arrive(1, 10, 0.0)
    assert sent(model.bounce(1, 0.1, reached=False)) == [(1, "b")]
    assert model.probe_targets() == {"a"}
    model.admit("a", 0.2)
    assert model.probe_targets() == frozenset()


def test_bounced_requests_come_back_before_all_others_in_order_of_arrival() -> None:
    model = machine(replica("a"), terms=holding.Terms(slots=2))
    for n in range(4):
        model.arrive(n, 10, 0.0)
    for n in (1, 0, 2):
        model.bounce(n, 1.0, reached=False)
    assert [n for n, _ in sent(model.admit("a", 2.0))] == [0, 1, 2]


def test_a_request_that_was_reset_three_times_is_not_sent_again() -> None:
    model = machine(*(replica(uid) for uid in "abcd"))
    model.arrive(1, 10, 0.0)
    effects = [model.bounce(1, 1.0, reached=True) for _ in range(3)]
    assert effects[-1] == (Reject(1, Refusal.LOST),)
    assert model.in_flight == 0


def test_a_refused_connection_may_happen_any_number_of_times() -> None:
    model = machine(*(replica(uid) for uid in "abcdef"))
    model.arrive(1, 10, 0.0)
    assert all(sent(model.bounce(1, 1.0, reached=False)) for _ in range(5))


def test_the_share_caps_and_never_exceeds_what_the_slots_allow() -> None:
    model = machine(replica("a"))
    assert model.cap == 5
    model.set_share(2, 0.0)
    assert model.cap == 2
    model.set_share(100, 0.0)
    assert model.cap == 5


def test_a_larger_share_releases_what_is_held() -> None:
    model = machine(replica("a"))
    model.set_share(0, 0.0)
    model.arrive(1, 10, 0.0)
    model.arrive(2, 10, 0.0)
    assert sent(model.set_share(2, 1.0)) == [(2, "a")]


def test_service_time_counts_emulated_seconds_of_completed_requests_only() -> None:
    model = machine(replica("a"))
    for n in range(2):
        model.arrive(n, 10, 0.0)
    model.complete(0, 3.0)
    model.drop(1, 9.0)
    demand = model.demand("n", "m", 9.0)
    assert (demand.arrivals, demand.completions, demand.service_sum_s) == (2, 1, 30.0)


# --- fences ---------------------------------------------------------------------------------------


def test_a_fence_is_granted_when_nothing_is_held_or_in_flight() -> None:
    assert machine(replica("a")).fence("f", ["a"], 0.0) == wire.FenceAnswer(True, 0, 0)


def test_a_fence_is_refused_while_something_is_in_flight_to_its_pods() -> None:
    model = machine(replica("a"))
    model.arrive(1, 10, 0.0)
    assert model.fence("f", ["a"], 0.0) == wire.FenceAnswer(False, 0, 1)


def test_a_fence_is_refused_while_something_is_held() -> None:
    model = machine(replica("a", ready=False))
    model.arrive(1, 10, 0.0)
    assert model.fence("f", ["a"], 0.0) == wire.FenceAnswer(False, 1, 0)


def test_requests_on_terminating_pods_do_not_refuse_a_fence() -> None:
    model = machine(replica("a"), replica("b"))
    model.arrive(1, 10, 0.0)
    model.update(TERMS, [replica("a", leaving=True, terminating=True), replica("b")], 1.0)
    assert model.fence("f", ["a", "b"], 1.0).granted


def test_a_fenced_pod_gets_nothing_until_the_fence_is_lifted() -> None:
    model = machine(replica("a"))
    model.fence("f", ["a"], 0.0)
    assert model.arrive(1, 10, 1.0) == []
    assert model.unfence("other", 1.0) == ()
    assert sent(model.unfence("f", 1.0)) == [(1, "a")]


def test_a_fence_lapses_after_three_seconds() -> None:
    model = machine(replica("a"))
    model.fence("f", ["a"], 0.0)
    model.arrive(1, 10, 1.0)
    assert model.next_wake() == 3.0
    assert sent(model.advance(2.9)) == []
    assert sent(model.advance(3.0)) == [(1, "a")]


def test_a_fence_never_bars_the_pods_of_a_wake() -> None:
    model = machine(replica("a"))
    model.fence("f", ["a"], 0.0)
    model.arrive(1, 10, 1.0)
    assert sent(model.update(TERMS, [replica("a"), replica("new")], 1.5)) == [(1, "new")]


def test_the_fence_in_force_is_reported() -> None:
    model = machine(replica("a"))
    model.fence("f", ["a"], 0.0)
    assert model.demand("n", "m", 1.0).fenced == "f"
    model.advance(3.0)
    assert model.demand("n", "m", 3.0).fenced == ""


def test_a_stopping_gateway_refuses_what_is_held_and_what_comes() -> None:
    model = machine()
    model.arrive(1, 10, 0.0)
    assert model.stop(1.0) == [Reject(1, Refusal.STOPPING)]
    assert model.arrive(2, 10, 1.0) == (Reject(2, Refusal.STOPPING),)


# --- properties -----------------------------------------------------------------------------------

UIDS = st.sampled_from("abc")
# Caps of 2 are reached within a few steps.
NARROW = holding.Terms(slots=1, max_requests=5, max_bytes=2000, max_real_s=60.0)


class HoldingMachine(RuleBasedStateMachine):
    """Anything that can happen, in any order."""

    @initialize()
    def begin(self) -> None:
        self.model = holding.Holding(NARROW)
        self.replicas: dict[str, fleet.Replica] = {}
        self.now_real_s = 0.0
        self.next_id = 0
        self.arrived: list[int] = []
        self.flying: dict[int, str] = {}
        self.ended: Counter[int] = Counter()
        self.fences: dict[str, tuple[frozenset[str], float]] = {}

    def take(self, effects: Sequence[holding.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reject):
                self.ended[effect.request_id] += 1
                continue
            held = (n for n in self.open() if n not in self.flying)
            assert effect.request_id == min(held), "first come, first served"
            self.check_target(effect.pod_uid)
            self.flying[effect.request_id] = effect.pod_uid
            load = Counter(self.flying.values())[effect.pod_uid]
            assert load <= self.model.cap, "no herd"

    def check_target(self, uid: str) -> None:
        assert not self.replicas[uid].leaving
        barred = (uids for uids, end in self.fences.values() if end > self.now_real_s)
        assert uid not in frozenset().union(*barred)

    def open(self) -> list[int]:
        return [n for n in self.arrived if not self.ended[n]]

    @rule(size_bytes=st.integers(0, 600))
    def arrive(self, size_bytes: int) -> None:
        self.next_id += 1
        self.arrived.append(self.next_id)
        self.take(self.model.arrive(self.next_id, size_bytes, self.now_real_s))

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), how=st.sampled_from(["complete", "drop", "reset", "refused"]))
    def end_flight(self, data: st.DataObject, how: str) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.flying)))
        del self.flying[request_id]
        if how in ("complete", "drop"):
            self.ended[request_id] += 1
            end = self.model.complete if how == "complete" else self.model.drop
            self.take(end(request_id, self.now_real_s))
        else:
            effects = self.model.bounce(request_id, self.now_real_s, reached=how == "reset")
            self.take(effects)

    @precondition(lambda self: self.open())
    @rule(data=st.data())
    def disconnect(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(self.open()))
        self.flying.pop(request_id, None)
        self.ended[request_id] += 1
        self.take(self.model.drop(request_id, self.now_real_s))

    @rule(uid=UIDS, ready=st.booleans(), leaving=st.booleans())
    def change_replica(self, uid: str, ready: bool, leaving: bool) -> None:
        self.replicas[uid] = replica(uid, ready=ready, leaving=leaving)
        self.update(NARROW)

    @rule(uid=UIDS)
    def lose_replica(self, uid: str) -> None:
        self.replicas.pop(uid, None)
        self.update(NARROW)

    @rule(closed=st.sampled_from([Refusal.DELETED, Refusal.SCALED_TO_ZERO]))
    def close(self, closed: Refusal) -> None:
        self.update(dataclasses.replace(NARROW, closed=closed))
        self.update(NARROW)

    def update(self, terms: holding.Terms) -> None:
        self.take(self.model.update(terms, self.replicas.values(), self.now_real_s))

    @rule(uid=UIDS)
    def admit(self, uid: str) -> None:
        self.take(self.model.admit(uid, self.now_real_s))

    @rule(share=st.integers(1, 9))
    def set_share(self, share: int) -> None:
        # A share that shrinks recalls nothing: what is in flight stays over it for a while.
        self.take(self.model.set_share(max(share, self.model.share or 1), self.now_real_s))

    @rule(fence_id=st.sampled_from("xy"), uids=st.frozensets(UIDS))
    def fence(self, fence_id: str, uids: frozenset[str]) -> None:
        held = self.model.held
        answer = self.model.fence(fence_id, sorted(uids), self.now_real_s)
        load = sum(1 for uid in self.flying.values() if uid in uids)
        assert answer.granted == (held == 0 and load == 0)
        if answer.granted:
            self.fences[fence_id] = uids, self.now_real_s + wire.FENCE_LAPSE_REAL_S

    @rule(fence_id=st.sampled_from("xy"))
    def unfence(self, fence_id: str) -> None:
        self.fences.pop(fence_id, None)
        self.take(self.model.unfence(fence_id, self.now_real_s))

    @rule(seconds=st.floats(0.1, 30))
    def advance(self, seconds: float) -> None:
        self.now_real_s += seconds
        self.take(self.model.advance(self.now_real_s))

    @invariant()
    def everyone_is_somewhere_exactly_once(self) -> None:
        assert all(count == 1 for count in self.ended.values())
        assert self.model.in_flight == len(self.flying)
        assert self.model.held == len(self.open()) - len(self.flying)

    @invariant()
    def nobody_waits_while_there_is_room(self) -> None:
        lapsed = any(end <= self.now_real_s for _, end in self.fences.values())
        if self.model.held and not lapsed:
            assert self.model._pick() is None

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        for request_id in self.open():
            self.flying.pop(request_id, None)
            self.ended[request_id] += 1
            self.take(self.model.drop(request_id, self.now_real_s))
        assert (self.model.held, self.model.held_bytes, self.model.in_flight) == (0, 0, 0)
        assert self.model.demand("n", "m", self.now_real_s).in_flight == {}


TestHoldingMachine = HoldingMachine.TestCase
TestHoldingMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
