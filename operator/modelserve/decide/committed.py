"""Policy Committed: a queue that grew because replicas still start is no reason to order more.

Without a backlog the count follows the arrival rate. With one, what counts is the backlog left when
a replica ordered now could help: by then the replicas ordered earlier have been draining.
"""

from modelserve.decide import forecast, record, situation, wording

Reason = record.Reason
Recommendation = situation.Recommendation


def recommend(view: situation.Situation) -> Recommendation:
    """Recommend a count of replicas."""
    parameters, now = view.parameters, view.demand
    slots = parameters.slots
    load = view.arrival_rate_per_s * view.service_s / (slots * parameters.utilization)
    under_way = situation.ceil(min(now.on_replicas, float(view.supply.ready * slots)) / slots)
    steady = max(situation.ceil(load), under_way)
    backlog = max(0.0, now.total - view.supply.ready * slots)
    inputs = {"load": load, "steady": float(steady), "backlog": backlog}
    if backlog > 0:
        return _with_backlog(view, steady, backlog, inputs)
    return _without(view, steady, under_way, load, inputs)


def _takes(view: situation.Situation, load: float) -> str:
    """What the load that comes in takes."""
    spare = f" and {wording.replicas(view.spare)} to spare" if view.spare else ""
    percent = f"{view.parameters.utilization * 100:g} %"
    return f"at {percent} of {view.parameters.slots} slots that takes {load:.2f} replicas{spare}"


def _without(
    view: situation.Situation, steady: int, under_way: int, load: float, inputs: dict[str, float]
) -> Recommendation:
    count, kept = steady + view.spare, view.kept
    why = _takes(view, load)
    near = abs(load + view.spare - kept) <= view.parameters.tolerance * kept
    if near and kept > 0 and count != kept:
        return Recommendation(max(kept, under_way), Reason.WITHIN_TOLERANCE, why, inputs)
    return Recommendation(count, Reason.STEADY_LOAD, why, inputs)


def _with_backlog(
    view: situation.Situation, steady: int, backlog: float, inputs: dict[str, float]
) -> Recommendation:
    parameters = view.parameters
    horizon_s = parameters.cold_start_s
    left = forecast.backlog_after(view.fluid(), backlog, horizon_s)
    need_per_s = view.arrival_rate_per_s + left / parameters.goal_s
    least = steady + view.spare
    inputs["backlog_after_cold_start"] = left
    inputs["need_per_s"] = need_per_s
    starting = wording.starting(view.supply, view.now_s)
    if view.kept * view.replica_rate_per_s >= need_per_s - situation.ROUNDING:
        if least > view.kept:
            # The backlog needs none, but the load that comes in does.
            why = f"{starting}; {_takes(view, inputs['load'])}"
            return Recommendation(least, Reason.STEADY_LOAD, why, inputs)
        why = (
            f"{starting}; of the {wording.number(backlog)} that wait {wording.number(left)} are "
            f"left in {wording.seconds(horizon_s)}, when one ordered now could help"
        )
        return Recommendation(view.kept, Reason.BACKLOG_WITHIN_COLD_START, why, inputs)
    count = max(situation.ceil(need_per_s / view.replica_rate_per_s), least)
    why = (
        f"{starting}; in {wording.seconds(horizon_s)}, when one ordered now could help, "
        f"{wording.number(left)} are left, and {need_per_s:.1f}/s are needed"
    )
    return Recommendation(count, Reason.BACKLOG_BEYOND_COLD_START, why, inputs)
