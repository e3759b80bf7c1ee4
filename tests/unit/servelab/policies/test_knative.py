"""What Knative makes of the count: bounds, initial scale, deadline, and the way to zero."""

import dataclasses

from servelab.policies import knative, kpa
from servelab.policies.decision import Decision, Reason
from servelab.policies.observation import Observation, Pod

PLAIN = knative.Knative(kpa.Knobs(target=7.0, total=10.0))


def seen(count: int, demand: float | None, ready: int | None = None) -> Observation:
    pods = count if ready is None else ready
    held = demand or 0.0 if pods == 0 else 0.0
    return Observation(count, demand, tuple(Pod(f"p{n}", True) for n in range(pods)), held=held)


class Run:
    """A revision whose pods are ready at once unless told otherwise, called as it asks to be."""

    def __init__(self, policy: knative.Knative, count: int = 0, now_s: float = 0.0) -> None:
        self.policy, self.count, self.now_s = policy, count, now_s
        self.state = policy.start(count, now_s)

    def at(self, now_s: float, demand: float | None, ready: int | None = None) -> Decision:
        self.now_s = now_s
        view = seen(self.count, demand, ready)
        decision, self.state = self.policy.decide(view, self.state, now_s)
        self.count = decision.desired
        return decision

    def until(self, end_s: float, demand: float | None, ready: int | None = None) -> list[int]:
        counts = []
        while self.now_s + 1 <= end_s:
            counts.append(self.at(self.now_s + 1, demand, ready).desired)
        return counts


def zero_after(policy: knative.Knative, load: float = 5.0) -> float:
    """Seconds from the last request to zero, after ten minutes of load."""
    run = Run(policy)
    run.at(0, load)
    run.until(600, load)
    while run.count > 0 and run.now_s < 3000:
        run.at(run.now_s + 1, 0)
    return run.now_s - 600


def test_a_request_at_zero_is_told_at_once() -> None:
    run = Run(PLAIN)
    assert run.at(0.0, 0).revisit_at_s is None
    assert run.at(0.7, 1).desired == 1
    assert run.at(0.8, 20).desired == 1  # the next tick is two seconds later


def test_zero_takes_the_stable_window_when_the_activator_is_in_the_path_anyway() -> None:
    # A burst capacity of 211 keeps the activator in the path of small revisions.
    assert 60 <= zero_after(PLAIN) <= 63


def test_zero_takes_the_grace_period_too_when_the_activator_was_not_in_the_path() -> None:
    knobs = dataclasses.replace(PLAIN.knobs, target_burst_capacity=0.0)
    assert 90 <= zero_after(dataclasses.replace(PLAIN, knobs=knobs)) <= 93


def test_the_last_pod_is_retained() -> None:
    assert 360 <= zero_after(dataclasses.replace(PLAIN, retention_s=300.0)) <= 364


def test_an_unreachable_revision_does_not_retain_its_last_pod() -> None:
    knobs = dataclasses.replace(PLAIN.knobs, reachable=False)
    assert zero_after(dataclasses.replace(PLAIN, knobs=knobs, retention_s=300.0)) <= 63


def test_without_scale_to_zero_one_pod_stays() -> None:
    run = Run(dataclasses.replace(PLAIN, scale_to_zero=False), count=1)
    run.at(0, 5)
    assert set(run.until(500, 0)) == {1}


def test_bounds_hold() -> None:
    run = Run(dataclasses.replace(PLAIN, min_scale=2, max_scale=3), count=2)
    run.at(0, 500)
    assert run.until(20, 500)[-1] == 3
    assert run.until(400, 0)[-1] == 2


def test_a_new_revision_keeps_its_initial_scale_until_it_was_ready_once() -> None:
    run = Run(dataclasses.replace(PLAIN, initial_scale=3), count=3)
    run.state = run.policy.created(0.0)
    assert set(run.until(100, 0, ready=2)) == {3}
    run.until(102, 0, ready=3)
    assert run.until(300, 0)[-1] == 0


def test_what_is_not_ready_by_the_deadline_is_given_up() -> None:
    run = Run(PLAIN)
    run.at(0.0, 1)
    assert set(run.until(629, 0, ready=0)) == {1}
    decision = run.at(636, 0, ready=0)
    assert (decision.desired, decision.reason) == (0, Reason.DEADLINE)


def test_without_figures_nothing_changes() -> None:
    run = Run(PLAIN, count=3)
    run.at(0, 20)
    assert set(run.until(300, None)) == {3}


def test_requests_per_second_are_counted_between_scrapes() -> None:
    knobs = kpa.Knobs(target=10.0, total=10.0)
    policy = knative.Knative(knobs, knative.Counts.RPS)
    view = dataclasses.replace(seen(1, 0), arrivals=15)
    _, state = policy.decide(view, policy.start(1, 0.0), 0.0)
    _, state = policy.decide(view, state, 0.5)
    _, state = policy.decide(view, state, 1.0)
    decision, _ = policy.decide(dataclasses.replace(view, arrivals=0), state, 2.0)
    assert decision.inputs["stable"] == 15


def test_the_constants_are_those_of_the_config_map() -> None:
    plain = knative.Knative.on_concurrency(100)
    assert plain.knobs == kpa.Knobs()
    assert (plain.grace_s, plain.retention_s, plain.initial_scale) == (30, 0, 1)
