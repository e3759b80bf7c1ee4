"""Flows over time, against a plain simulation that starts from scratch at every event."""

import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve import errors
from servelab.timing import fairness, fluid, trajectory

LINKS = {"a": 1.0, "b": 2.5, "c": 4.0, "d": 10.0}
Ends = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A flow to start, and when it is stopped (infinite: never)."""

    at_s: float
    pieces: tuple[trajectory.Piece, ...]
    stop_s: float = math.inf


def moving(n_bytes: float, *path: str, cap: float = math.inf) -> trajectory.Piece:
    return trajectory.Piece(n_bytes, fairness.Demand(path, cap))


pieces = st.one_of(
    st.builds(trajectory.wait, st.floats(0.0, 5.0)),
    st.builds(
        trajectory.Piece,
        st.one_of(st.just(10.0), st.floats(0.0, 50.0)),
        st.builds(
            fairness.Demand,
            st.lists(st.sampled_from(sorted(LINKS)), min_size=1, max_size=3, unique=True).map(
                tuple
            ),
            st.one_of(st.just(math.inf), st.floats(0.2, 5.0)),
            st.sampled_from([1.0, 4.0]),
        ),
    ),
)
cases = st.lists(
    st.builds(
        Case,
        st.one_of(st.sampled_from([0.0, 3.0]), st.floats(0.0, 20.0)),
        st.lists(pieces, max_size=3).map(tuple),
        st.one_of(st.just(math.inf), st.floats(0.0, 40.0)),
    ),
    min_size=1,
    max_size=8,
)


def plainly(wanted: list[Case]) -> Ends:
    """Ends by a simulation that knows nothing of cutting, components or agendas."""
    ends: Ends = {}
    todo = {str(n): [piece.size_bytes for piece in one.pieces] for n, one in enumerate(wanted)}
    now_s = 0.0
    while len(ends) < len(wanted):
        for key, left in todo.items():
            one = wanted[int(key)]
            while left and left[0] <= 1e-9:
                left.pop(0)
            if key not in ends and one.at_s <= now_s and (not left or now_s >= one.stop_s):
                ends[key] = now_s
        on = [k for k in todo if k not in ends and wanted[int(k)].at_s <= now_s]
        demands = [wanted[int(k)].pieces[-len(todo[k])].demand for k in on]
        rates = fairness.rates(demands, LINKS)
        times = [now_s + todo[k][0] / rate for k, rate in zip(on, rates, strict=True) if rate]
        times += [one.at_s for one in wanted if one.at_s > now_s]
        times += [one.stop_s for one in wanted if one.stop_s > now_s]
        next_s = min(times, default=math.inf)
        if next_s == math.inf:
            break
        for key, rate in zip(on, rates, strict=True):
            todo[key][0] -= rate * (next_s - now_s)
        now_s = next_s
    return ends


def fresh() -> fluid.Fluid:
    flows = fluid.Fluid()
    for name, rate in LINKS.items():
        flows.set_link(name, rate, 0.0)
    return flows


def begin(flows: fluid.Fluid, wanted: list[Case], key: str, shift_s: float = 0.0) -> None:
    flows.start(key, wanted[int(key)].pieces, wanted[int(key)].at_s + shift_s)


def ends(flows: fluid.Fluid, wanted: list[Case]) -> Ends:
    return {str(n): flows.ends_at_s(str(n)) for n in range(len(wanted))}


def never_stopped(wanted: list[Case]) -> list[Case]:
    return [Case(one.at_s, one.pieces) for one in wanted]


@given(cases.map(never_stopped))
def test_ends_are_those_of_a_plain_simulation(wanted: list[Case]) -> None:
    flows = fresh()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    assert ends(flows, wanted) == pytest.approx(plainly(wanted), abs=1e-6)


@given(cases.map(never_stopped), st.randoms(use_true_random=False))
def test_neither_the_order_of_calls_nor_questions_between_them_matter(
    wanted: list[Case], rng: random.Random
) -> None:
    flows, order = fresh(), [str(n) for n in range(len(wanted))]
    rng.shuffle(order)
    for key in order:
        begin(flows, wanted, key)
        flows.ends_at_s(rng.choice(order[: order.index(key) + 1]))
    assert ends(flows, wanted) == pytest.approx(plainly(wanted), abs=1e-6)


@given(cases, st.randoms(use_true_random=False))
def test_stopping_frees_the_links_whenever_it_is_told(
    wanted: list[Case], rng: random.Random
) -> None:
    flows, order = fresh(), [str(n) for n in range(len(wanted))]
    rng.shuffle(order)
    for key in order:
        begin(flows, wanted, key)
        flows.ends_at_s(key)
    stopped = [key for key in order if wanted[int(key)].stop_s < math.inf]
    for key in stopped:
        flows.stop(key, wanted[int(key)].stop_s)
    known = plainly(wanted)
    for key in set(order) - set(stopped):
        assert flows.ends_at_s(key) == pytest.approx(known[key], abs=1e-6)


@given(cases.map(never_stopped), st.floats(-1e6, 1e6))
def test_a_shift_in_time_shifts_the_ends(wanted: list[Case], shift_s: float) -> None:
    flows, shifted = fresh(), fresh()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
        begin(shifted, wanted, str(n), shift_s)
    moved = {key: end + shift_s for key, end in ends(flows, wanted).items()}
    assert ends(shifted, wanted) == pytest.approx(moved, abs=1e-5)


@given(cases.map(never_stopped), st.integers(1, 50))
def test_many_small_steps_and_one_large_see_the_same(wanted: list[Case], steps: int) -> None:
    small, large = fresh(), fresh()
    for n in range(len(wanted)):
        begin(small, wanted, str(n))
        begin(large, wanted, str(n))
    seen = [key for step in range(steps + 1) for key in small.advance(500.0 * step / steps)]
    assert seen == large.advance(500.0)
    assert sorted(seen) == sorted(str(n) for n in range(len(wanted)))
    assert ends(small, wanted) == ends(large, wanted)


@given(cases.map(never_stopped))
def test_bytes_moved_are_bytes_asked(wanted: list[Case]) -> None:
    flows = fresh()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    for key, end_s in ends(flows, wanted).items():
        asked = trajectory.total_bytes(wanted[int(key)].pieces)
        assert flows.at(key, end_s) == pytest.approx((asked, 0.0))
        assert flows.at(key, 1e9) == pytest.approx((asked, 0.0))


@given(cases.map(never_stopped), st.floats(0.0, 60.0))
def test_no_link_carries_more_than_it_can_at_any_time(wanted: list[Case], now_s: float) -> None:
    flows = fresh()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    assert all(flows.load(link, now_s) <= rate * (1 + 1e-9) for link, rate in LINKS.items())


@given(cases.map(never_stopped))
def test_what_passed_a_flow_is_the_sum_of_its_rates(wanted: list[Case]) -> None:
    flows = fresh()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    last_s = max(ends(flows, wanted).values())
    for key in ends(flows, wanted):
        steps = [flows.at(key, last_s * step / 40)[0] for step in range(41)]
        assert steps == sorted(steps)


@settings(max_examples=50)
@given(cases.map(never_stopped))
def test_the_next_end_is_the_earliest_and_told_once(wanted: list[Case]) -> None:
    flows, seen = fresh(), []
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    while (next_s := flows.next_end_s()) < math.inf:
        over = flows.advance(next_s)
        assert over
        assert all(flows.ends_at_s(key) == next_s for key in over)
        seen += over
    assert sorted(seen) == sorted(str(n) for n in range(len(wanted)))


@settings(max_examples=50)
@given(cases.map(never_stopped))
def test_who_sleeps_until_the_wake_time_sees_every_end_when_it_happens(wanted: list[Case]) -> None:
    flows, seen = fresh(), dict[str, float]()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    while (wake_s := flows.wake_s()) < math.inf:
        seen |= dict.fromkeys(flows.advance(wake_s), wake_s)
    assert seen == ends(flows, wanted)


def test_components_that_share_no_link_do_not_move_each_other() -> None:
    flows = fresh()
    flows.start("a", [moving(10, "a")], 0.0)
    flows.start("b", [moving(10, "b")], 0.0)
    before = flows.ends_at_s("a"), flows.ends_at_s("b")
    flows.start("more", [moving(10, "b")], 1.0)
    assert flows.take_moved() == ["b"]
    assert (flows.ends_at_s("a"), flows.ends_at_s("b")) == pytest.approx((before[0], 7.0))


def test_a_link_that_hangs_holds_its_flows_until_it_is_back() -> None:
    flows = fresh()
    flows.start("a", [moving(10, "a")], 0.0)
    flows.set_link("a", 0.0, 4.0)
    assert flows.ends_at_s("a") == math.inf
    flows.set_link("a", 3.0, 100.0)
    assert flows.take_moved() == ["a"]
    assert flows.ends_at_s("a") == pytest.approx(102.0)


def test_a_later_change_of_rate_survives_an_earlier_start() -> None:
    flows = fresh()
    flows.start("a", [moving(10, "a")], 0.0)
    flows.set_link("a", 2.0, 5.0)
    assert flows.ends_at_s("a") == pytest.approx(7.5)
    flows.start("b", [moving(1, "a")], 0.0)
    assert flows.ends_at_s("b") == pytest.approx(2.0)
    assert flows.ends_at_s("a") == pytest.approx(8.0)


def test_one_that_waits_for_another_begins_when_that_has_ended_or_was_stopped() -> None:
    flows = fresh()
    flows.start("first", [moving(10, "a")], 0.0)
    flows.start("second", [moving(5, "b")], 1.0, after="first")
    assert flows.ends_at_s("second") == pytest.approx(12.0)
    flows.start("other", [moving(5, "a")], 0.0)
    assert flows.ends_at_s("second") == pytest.approx(17.0)
    flows.stop("first", 6.0)
    assert flows.ends_at_s("second") == pytest.approx(8.0)


def test_one_that_waits_for_nobody_known_begins_at_once() -> None:
    flows = fresh()
    flows.start("second", [moving(5, "b")], 1.0, after="long gone")
    assert flows.ends_at_s("second") == pytest.approx(3.0)


def test_a_flow_that_begins_anew_forgets_what_it_had_moved() -> None:
    flows = fresh()
    flows.start("a", [moving(10, "a")], 0.0)
    flows.start("a", [moving(10, "a")], 9.0)
    assert flows.ends_at_s("a") == pytest.approx(19.0)


def test_an_end_that_was_told_stays_when_something_starts_before_it() -> None:
    flows = fresh()
    flows.start("a", [moving(10, "a")], 0.0)
    assert flows.advance(10.0) == ["a"]
    flows.start("late", [moving(10, "a")], 5.0)
    assert flows.ends_at_s("a") == 10.0
    assert flows.advance(30.0) == ["late"]


def test_what_was_stopped_long_ago_is_forgotten() -> None:
    flows = fresh()
    for n in range(100):
        flows.start(str(n), [moving(1, "a")], n * 1000.0)
        flows.stop(str(n), n * 1000.0 + 10)
    assert len(list(flows._network.users("a"))) <= 6


def test_a_dropped_link_goes_when_the_last_flow_on_it_is_forgotten() -> None:
    flows = fresh()
    flows.start("a", [moving(10, "a")], 0.0)
    flows.drop_link("a")
    assert flows.ends_at_s("a") == 10.0
    flows.stop("a", 10.0)
    flows.start("b", [moving(10, "b")], 10.0 + fluid.MEMORY_S)
    with pytest.raises(errors.InputError, match="link a"):
        flows.start("c", [moving(10, "a")], 10.0 + fluid.MEMORY_S)


def test_a_thousand_flows_over_two_hundred_links_share_them() -> None:
    flows, rng = fluid.Fluid(), random.Random(1)
    links = {f"link-{n}": rng.uniform(1e8, 1e10) for n in range(200)}
    for name, rate in links.items():
        flows.set_link(name, rate, 0.0)
    for n in range(1000):
        size, path = rng.uniform(1e9, 1e11), rng.sample(sorted(links), 3)
        flows.start(str(n), [moving(size, *path)], 0.0)
    used = {name: flows.load(name, 0.0) / rate for name, rate in links.items()}
    assert max(used.values()) == pytest.approx(1.0)
    assert flows.advance(flows.next_end_s())


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        (moving(1, "nowhere"), "nobody gave link nowhere a rate"),
        (moving(1), "need a rate above 0"),
    ],
)
def test_flows_that_cannot_be_are_refused(piece: trajectory.Piece, says: str) -> None:
    with pytest.raises(errors.InputError, match=says):
        fresh().start("x", [piece], 0.0)


@pytest.mark.parametrize("rate", [-1.0, math.inf, math.nan])
def test_links_that_cannot_be_are_refused(rate: float) -> None:
    with pytest.raises(errors.InputError, match="link a"):
        fresh().set_link("a", rate, 0.0)


@given(cases.map(never_stopped))
def test_what_is_told_of_an_end_is_when_it_comes(wanted: list[Case]) -> None:
    flows, come = fresh(), Ends()
    for n in range(len(wanted)):
        begin(flows, wanted, str(n))
    told = ends(flows, wanted)
    while (at_s := flows.next_end_s()) < math.inf:
        come |= dict.fromkeys(flows.advance(at_s), at_s)
    assert told == pytest.approx(come, abs=1e-6)


def test_a_hundred_equal_flows_end_one_after_the_other_by_their_size() -> None:
    flows = fluid.Fluid()
    flows.set_link("backend", 40.0, 0.0)
    for n in range(100):
        flows.set_link(f"node/{n}", 6.0, 0.0)
        flows.start(str(n), [moving(100.0 + n, f"node/{n}", "backend", cap=5.0)], 0.0)
    # All move alike until the smallest is there: 100 flows x 100 bytes over 40 bytes/s.
    assert flows.ends_at_s("0") == pytest.approx(250.0)
    assert flows.ends_at_s("99") < 100 * 199 / 40
    assert flows.ends_at_s("1") == pytest.approx(250.0 + 99 / 40)
