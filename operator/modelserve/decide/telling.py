"""The record's sentence and its numbers, put together when they are read."""

from modelserve.decide import observation, situation, wording
from modelserve.decide.verdict import Verdict


def message(
    seen: observation.Observation,
    view: situation.Situation,
    verdict: Verdict,
    *,
    left_alone: bool,
) -> str:
    """The record's sentence."""
    current, count = view.current, verdict.replicas
    demanded = wording.demanded(view.demand, view.arrival_rate_per_s, view.service_s)
    if left_alone:
        whose = f"somebody else set {current}, we {seen.written_count}: left alone for now"
        return f"{whose}; {demanded}: {verdict.text}, so {count} would be right"
    return f"{demanded}: {verdict.text}, {wording.step(current, count)}"


def numbers(view: situation.Situation, wanted: int) -> dict[str, float]:
    """All the numbers a decision used."""
    now, have = view.demand, view.supply
    return {
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
        "wanted": float(wanted),
    }
