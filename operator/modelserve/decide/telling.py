"""What a decision was made from, and what it says of itself when it is asked."""

from collections.abc import Mapping
from typing import NamedTuple

from modelserve.decide import observation, schedule, situation, state, victims, wording
from modelserve.decide.verdict import Verdict


class Account(NamedTuple):
    """A decision's ``record.Account``. ``past`` is the state after it."""

    seen: observation.Observation
    view: situation.Situation
    verdict: Verdict
    wanted: int
    inputs: Mapping[str, float]
    past: state.ScalerState
    left_alone: bool  # somebody else wrote the count

    def message(self) -> str:
        """The record's sentence."""
        view, verdict = self.view, self.verdict
        current, count = view.current, verdict.replicas
        demanded = wording.demanded(view.demand, view.arrival_rate_per_s, view.service_s)
        if self.left_alone:
            written = self.seen.written_count
            whose = f"somebody else set {current}, we {written}: left alone for now"
            return f"{whose}; {demanded}: {verdict.text}, so {count} would be right"
        return f"{demanded}: {verdict.text}, {wording.step(current, count)}"

    def numbers(self) -> dict[str, float]:
        """All the numbers the decision used."""
        view = self.view
        now, have = view.demand, view.supply
        return {
            **self.inputs,
            "demand": now.total,
            "held": float(now.held),
            "refused": float(now.refused),
            "waiting": now.waiting,
            "running": now.running,
            "arrival_rate_per_s": view.arrival_rate_per_s,
            "expected_rate_per_s": view.expected_rate_per_s,
            "replica_rate_per_s": view.replica_rate_per_s,
            "service_s": view.service_s,
            "cold_start_s": view.parameters.cold_start_s,
            "slots": float(view.parameters.slots),
            "live_count": float(view.current),
            "ready": float(have.ready),
            "starting": float(len(have.starting_s)),
            "stuck": float(len(have.stuck)),
            "wanted": float(self.wanted),
        }

    def going(self) -> victims.Plan:
        """Who goes."""
        view = self.view
        shrink_by = view.current - self.verdict.replicas
        return victims.plan(self.seen.replicas, view.supply.stuck, view.demand.loads, shrink_by)

    def scale_down_at_s(self) -> float | None:
        """When the next shrink may happen."""
        return schedule.scale_down_s(self.view, self.verdict, self.wanted, self.past)

    def wait_s(self) -> float:
        """What a request that comes now waits."""
        return schedule.wait_s(self.view, self.verdict.replicas - self.view.current)
