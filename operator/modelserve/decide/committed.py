"""Policy Committed: a queue that grew because replicas still start is no reason to order more.

Without a backlog the count follows the arrival rate to expect until a replica ordered now could
help. With one, what counts is the backlog left then: by that time the replicas ordered earlier have
been draining. A shortfall within the tolerance is left alone. What a full replica drains is
measured. What a backlog took goes with it: the down window holds what the load took, and what was
under way at once with nobody waiting. Bursts that are gone within a cold start order nothing,
unless a headroom for them is asked for.
"""

from modelserve.decide import forecast, situation, wording
from modelserve.decide.record import Reason

Recommendation = situation.Recommendation


def recommend(view: situation.Situation) -> Recommendation:
    """Recommend a count of replicas."""
    parameters, now = view.parameters, view.demand
    slots, backlog = parameters.slots, view.backlog
    load = max(_rate(view), _crowd(view)) if parameters.burst_headroom else _rate(view)
    running = min(now.on_replicas, float(view.supply.ready * slots))
    # Who plans with more than a full replica takes gives one back while there is work for it.
    under_way = situation.ceil(running / (slots * max(1.0, parameters.utilization)))
    lasting = situation.ceil(load) + view.spare
    steady = max(situation.ceil(load), under_way)
    inputs = {"load": load, "steady": float(steady), "backlog": backlog}
    if backlog > 0:
        return _with_backlog(view, steady, lasting, inputs)
    return _without(view, steady, lasting, under_way, inputs)


def _rate(view: situation.Situation) -> float:
    """Replicas for the arrivals to expect."""
    return view.expected_rate_per_s / (view.replica_rate_per_s * view.parameters.utilization)


def _room(view: situation.Situation) -> float:
    """Replicas with room for the requests there are at once, as the headroom for bursts has it."""
    parameters = view.parameters
    return view.demand.total * parameters.burst_headroom / parameters.slots


def _crowd(view: situation.Situation) -> float:
    """The same, but for no more of what piled up while replicas were starting than they hold.

    Spare ones come on top, so they are not counted among those.
    """
    return min(_room(view), max(0.0, view.kept - view.spare)) if view.piled else _room(view)


def _takes(view: situation.Situation, load: float) -> str:
    """What the load to expect takes."""
    spare = f" and {wording.replicas(view.spare)} to spare" if view.spare else ""
    parameters, rate_per_s = view.parameters, view.expected_rate_per_s
    if load > _rate(view):
        each = (
            "a slot" if parameters.burst_headroom == 1 else f"{parameters.burst_headroom:g} slots"
        )
        crowd = wording.number(view.demand.total)
        if load < _room(view):
            room = wording.replicas(situation.ceil(load))
            return f"{crowd} piled up while replicas started and keep {room}{spare}"
        return f"{each} for each of {crowd} at once, which takes {load:.2f} replicas{spare}"
    if not rate_per_s:
        return f"nothing to expect{spare}"
    horizon = wording.seconds(parameters.cold_start_s)
    each = f"{parameters.utilization * 100:g} % of {wording.rate(view.replica_rate_per_s)} each"
    return (
        f"{wording.rate(rate_per_s)} to expect over {horizon}, "
        f"which takes {load:.2f} replicas at {each}{spare}"
    )


def _near(view: situation.Situation, load: float) -> bool:
    """Whether what there is differs from the load by no more than the tolerance."""
    kept = view.kept
    return abs(load + view.spare - kept) <= view.parameters.tolerance * kept


def _without(
    view: situation.Situation, steady: int, lasting: int, under_way: int, inputs: dict[str, float]
) -> Recommendation:
    count, kept, load = steady + view.spare, view.kept, inputs["load"]
    lasting = count if view.settled else lasting

    def why() -> str:
        return _takes(view, load)

    if kept > 0 and count != kept and _near(view, load):
        return Recommendation(max(kept, under_way), lasting, Reason.WITHIN_TOLERANCE, why, inputs)
    return Recommendation(count, lasting, Reason.STEADY_LOAD, why, inputs)


def _with_backlog(
    view: situation.Situation, steady: int, lasting: int, inputs: dict[str, float]
) -> Recommendation:
    parameters, backlog, load = view.parameters, view.backlog, inputs["load"]
    horizon_s = parameters.cold_start_s
    left = forecast.backlog_after(view.fluid(), backlog, horizon_s)
    need_per_s = view.expected_rate_per_s + left / parameters.goal_s
    least = steady + view.spare
    inputs["backlog_after_cold_start"] = left
    inputs["need_per_s"] = need_per_s

    def starting() -> str:
        return wording.starting(view.supply, view.now_s)

    def beyond() -> str:
        return (
            f"{starting()}; in {wording.seconds(horizon_s)}, when one ordered now could help, "
            f"{wording.number(left)} are left, and {need_per_s:.1f}/s are needed"
        )

    # While nothing serves, what is needed has only begun to show.
    slack = parameters.tolerance if view.supply.ready else 0.0
    supply_per_s = view.kept * view.replica_rate_per_s
    if supply_per_s * (1 + slack) >= need_per_s - situation.ROUNDING:
        if least > view.kept and not _near(view, load):
            # The backlog needs none, but the load to expect does.

            def why() -> str:
                return f"{starting()}; {_takes(view, load)}"

            return Recommendation(least, lasting, Reason.STEADY_LOAD, why, inputs)

        def within() -> str:
            waiting, rest = wording.number(backlog), wording.number(left)
            return (
                f"{starting()}; of the {waiting} that wait {rest} are left in "
                f"{wording.seconds(horizon_s)}, when one ordered now could help"
            )

        if supply_per_s >= need_per_s - situation.ROUNDING:
            reason = Reason.BACKLOG_WITHIN_COLD_START
            return Recommendation(view.kept, lasting, reason, within, inputs)

        def tolerated() -> str:
            have = wording.replicas(view.kept)
            return f"{beyond()}, within {slack * 100:g} % of {supply_per_s:.1f}/s of {have}"

        return Recommendation(view.kept, lasting, Reason.WITHIN_TOLERANCE, tolerated, inputs)

    count = max(situation.ceil(need_per_s / view.replica_rate_per_s), least)
    return Recommendation(count, lasting, Reason.BACKLOG_BEYOND_COLD_START, beyond, inputs)
