"""Replays recorded demand through our reading of the rules, and tells where the counts differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servelab.policies import kpa, recording
from servelab.policies.observation import Observation

Row = dict[str, int | float | bool]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first tick of a case whose count is another one, with all that differs in it."""

    case: str
    t: int
    real: Row
    ours: Row


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many ticks were compared and equal; a case's first difference, if it has one."""

    cases: int
    ticks: int
    equal: int
    first_differences: Sequence[Difference]


def compare(cases: Sequence[recording.KnativeCase | recording.KubernetesCase]) -> Verdict:
    """Replay all cases; equal is what desires the same, and as validly."""
    ticks = equal = 0
    differences: list[Difference] = []
    for case in cases:
        told = False
        for real, ours in zip(_recorded(case), replay(case), strict=True):
            same = _decided(real) == _decided(ours)
            ticks += 1
            equal += same
            if not same and not told:
                keys = [key for key in real if real[key] != ours.get(key)]
                rows = ({key: side[key] for key in keys if key in side} for side in (real, ours))
                differences.append(Difference(case.name, int(real["t"]), *rows))
                told = True
    return Verdict(len(cases), ticks, equal, differences)


def replay(case: recording.KnativeCase | recording.KubernetesCase) -> Iterator[Row]:
    """What our reading of the rules finds at each recorded time, from the demand alone."""
    return _knative(case) if isinstance(case, recording.KnativeCase) else _kubernetes(case)


def _decided(row: Row) -> tuple[int | float | bool, ...]:
    return row["desired"], row.get("valid", True)


def _recorded(case: recording.KnativeCase | recording.KubernetesCase) -> Iterator[Row]:
    rows: Sequence[recording.Tick | recording.Sync]
    rows = case.ticks if isinstance(case, recording.KnativeCase) else case.syncs
    return (row.model_dump(exclude_none=True) for row in rows)


def _knative(case: recording.KnativeCase) -> Iterator[Row]:
    """A pod ordered at a tick is ready a cold start later; the last ordered is the first to go."""
    knobs, start_s = case.knobs(), recording.KNATIVE_START_S
    state = kpa.start(knobs, 0, start_s)
    orders: list[tuple[float, int]] = []  # (ready from, pods), oldest first
    second = 0
    for tick in case.ticks:
        for value in case.demand_per_second[second : tick.t + 1]:
            if value is not None:
                state = kpa.record(state, value, start_s + second)
            second += 1
        ready = sum(pods for from_s, pods in orders if from_s <= tick.t)
        found, state = kpa.scale(knobs, state, ready, start_s + tick.t)
        row: Row = {"t": tick.t, "ready": ready}
        if found is None:
            yield row | {"stable": 0.0, "panic": 0.0, "desired": 0, "valid": False}
            continue
        _order(orders, found.desired, tick.t + case.cold_start_s)
        averages = {"stable": found.stable, "panic": found.panic}
        yield row | averages | {"desired": found.desired, "valid": True}


def _order(orders: list[tuple[float, int]], count: int, ready_s: float) -> None:
    missing = count - sum(pods for _, pods in orders)
    if missing > 0:
        orders.append((ready_s, missing))
    while missing < 0:
        from_s, pods = orders.pop()
        missing += pods
        if missing > 0:
            orders.append((from_s, missing))


def _kubernetes(case: recording.KubernetesCase) -> Iterator[Row]:
    """The count is applied at once."""
    scaler, count = case.scaler(), max(1, case.min)
    state = scaler.start(count, float(case.syncs[0].t) if case.syncs else 0.0)
    for sync in case.syncs:
        metric = case.demand_per_second[sync.t]
        decision, state = scaler.decide(Observation(count, metric), state, float(sync.t))
        row: Row = {"t": sync.t, "metric": metric, "current": count, "raw": decision.unlimited}
        count = decision.desired
        yield row | {"desired": count}
