"""Policy QueueDepth: demand over target, rounded up, as HPA and KEDA users expect it."""

from modelserve.api import spec as api
from modelserve.decide import record, situation, wording

Reason = record.Reason
Recommendation = situation.Recommendation


def recommend(view: situation.Situation) -> Recommendation:
    """Recommend a count of replicas. At zero there is no tolerance, as in the HPA."""
    now, target = view.demand, view.parameters.target
    waiting_only = view.parameters.counts is api.QueueDepthCounts.WAITING
    counted = now.held + now.refused + now.waiting if waiting_only else now.total
    inputs = {"counted": float(counted), "target": target}

    def why() -> str:
        what = "waiting" if waiting_only else "in demand"
        takes = counted / target
        return f"{wording.number(counted)} {what} at {target:g} a replica take {takes:.2f}"

    if view.current > 0:
        ratio = counted / (target * view.current)
        if abs(ratio - 1) <= view.parameters.tolerance:
            return Recommendation(view.current, view.current, Reason.WITHIN_TOLERANCE, why, inputs)
    count = situation.ceil(counted / target) + view.spare
    return Recommendation(count, count, Reason.STEADY_LOAD, why, inputs)
