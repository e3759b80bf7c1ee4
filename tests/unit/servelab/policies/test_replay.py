"""Recorded decisions of Knative's and Kubernetes' own code, replayed from the demand alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from servelab.policies import recording, replay

RECORDINGS = Path(__file__).parent / "recordings"
FILES = sorted(RECORDINGS.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_recorded_tick_is_decided_alike(file: Path) -> None:
    verdict = replay.compare(recording.RECORDING.validate_json(file.read_bytes()))
    assert verdict.ticks > 300
    assert (verdict.equal, verdict.first_differences) == (verdict.ticks, [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_leads_to_the_count_is_the_same_too(file: Path) -> None:
    rows = json.loads(file.read_bytes())
    for row, case in zip(rows, recording.RECORDING.validate_python(rows), strict=True):
        assert list(replay.replay(case)) == row["ticks" if "ticks" in row else "syncs"]


def case(name: str = "a", **changes: Any) -> dict[str, Any]:
    knative = {"name": name, "target_per_pod": 1, "demand_per_second": [5] * 6, "ticks": []}
    return knative | changes


def test_a_difference_names_the_first_tick_and_only_what_differs() -> None:
    ticks = [{"t": 0, "desired": 5, "ready": 0}, {"t": 2, "desired": 4}, {"t": 4, "desired": 9}]
    verdict = replay.compare(recording.RECORDING.validate_python([case(ticks=ticks)]))
    assert (verdict.cases, verdict.ticks, verdict.equal) == (1, 3, 1)
    difference = replay.Difference("a", 2, {"desired": 4}, {"desired": 5})
    assert verdict.first_differences == [difference]


def test_a_second_without_report_is_no_zero_and_no_data_is_not_applied() -> None:
    demand = [3, None, None, *[None] * 60, None, None]
    ticks = [{"t": 2, "desired": 3}, {"t": 60, "desired": 1}]
    ticks.append({"t": 62, "desired": 0, "valid": False})
    row = case(demand_per_second=demand, ticks=ticks, panic_threshold=100)
    assert replay.compare(recording.RECORDING.validate_python([row])).equal == 3


def test_a_huge_demand_takes_no_memory_of_its_size() -> None:
    ticks = [{"t": t, "desired": 2**31 - 1 if t > 4 else 10 ** (3 * (t // 2 + 1))} for t in (0, 2)]
    demand = [1e12] * 6
    cases = recording.RECORDING.validate_python([case(demand_per_second=demand, ticks=ticks)])
    assert replay.compare(cases).equal == 2


def test_a_pod_that_still_starts_goes_before_one_that_is_ready() -> None:
    orders = [(0.0, 2), (10.0, 3)]
    replay._order(orders, 4, 12.0)
    assert orders == [(0.0, 2), (10.0, 2)]
    replay._order(orders, 1, 14.0)
    assert orders == [(0.0, 1)]
