"""What the autoscalers of other systems can see of one model at one instant.

Less than our own sees: no expected ready times, no shares of gateways. ``of`` makes it of what our
own decides from, so that a simulation shows the same moment to all.
"""

from dataclasses import dataclass

from modelserve.api import spec as api
from modelserve.decide import demand, observation

_UNBOUND = (observation.ReplicaState.PENDING, observation.ReplicaState.UNSCHEDULABLE)


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod. ``load`` counts the requests in it, running and queued; None: no figure."""

    name: str
    ready: bool
    load: float | None = None
    pending: bool = False  # no container of it has started
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """One model. Requests are counted in HTTP requests.

    ``demand`` is all that is open, held in front of the pods and in them; None: no figures at all.
    ``waiting`` is the part of it that nobody works on; None: no figures. ``arrivals`` counts what
    came since the last call of the policy.
    """

    count: int  # what is asked for: spec.replicas
    demand: float | None
    pods: tuple[Pod, ...] = ()
    waiting: float | None = None
    held: float = 0.0  # not yet sent to any pod, known to gateways only
    arrivals: int = 0

    @property
    def ready(self) -> int:
        """Pods that serve."""
        return sum(pod.ready and not pod.terminating for pod in self.pods)

    @property
    def staying(self) -> tuple[Pod, ...]:
        """Pods that are not on their way out."""
        return tuple(pod for pod in self.pods if not pod.terminating)

    def counted(self, counts: api.QueueDepthCounts) -> float | None:
        """The figure that a metric of this kind shows."""
        return self.waiting if counts is api.QueueDepthCounts.WAITING else self.demand


def of(
    seen: observation.Observation, parameters: observation.Parameters, now_s: float
) -> Observation:
    """The same moment as others see it, with demand added up as we do."""
    now = demand.measure(seen, parameters, now_s)
    held = float(now.held + now.refused)
    return Observation(
        count=seen.live_count,
        demand=now.total if now.signal else None,
        pods=tuple(_pod(replica, now) for replica in seen.replicas),
        waiting=held + now.waiting if now.signal else None,
        held=held,
        arrivals=seen.signal.arrivals,
    )


def _pod(replica: observation.Replica, now: demand.Demand) -> Pod:
    return Pod(
        replica.name,
        replica.serves,
        now.loads.get(replica.uid) if replica.serves else None,
        pending=replica.state in _UNBOUND,
        terminating=replica.state is observation.ReplicaState.TERMINATING,
    )
