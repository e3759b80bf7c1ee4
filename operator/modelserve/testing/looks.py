"""One look at a model with made-up pods and figures, and what is decided on it."""

from dataclasses import replace
from typing import Any

from modelserve.decide import observation, record, scaling, state, traffic, windows

State = observation.ReplicaState

NO_WINDOW = windows.Direction(0.0, observation.DEFAULT_DOWN.rates)
PARAMETERS = observation.Parameters(
    slots=8, cold_start_s=90, service_s=10, max_replicas=32, down=NO_WINDOW
)
NOW_S = 1000.0
WINDOW_S = 22.5  # that λ is measured over: a quarter of the cold start


def pod(
    uid: str, kind: State = State.READY, load: float = 0.0, **fields: Any
) -> observation.Replica:
    """A replica; a ready one works on ``load`` requests."""
    base = observation.Replica(uid, uid, kind, 990.0, ready_since_s=500.0, in_flight=int(load))
    if kind is State.READY:
        base = replace(base, running=load, waiting=0.0)
    return replace(base, **fields)


def seen(
    *pods: observation.Replica, count: int | None = None, **fields: int
) -> observation.Observation:
    """These pods and one gateway's figures."""
    signal = observation.GatewaySignal(**({"live_gateways": 1} | fields))
    return observation.Observation(pods, signal, len(pods) if count is None else count)


def blind(count: int) -> observation.Observation:
    """So many ready pods that nobody gives figures of."""
    return seen(*(pod(f"p{i}", running=None, waiting=None) for i in range(count)), live_gateways=0)


def busy(
    rate_per_s: float = 0.0, quiet_s: float = 0.0, service_s: float = 10.0
) -> state.ScalerState:
    """A past with a steady arrival rate until ``quiet_s`` ago."""
    end_s = NOW_S - quiet_s
    slices = ((end_s - WINDOW_S, end_s, round(rate_per_s * WINDOW_S + 1)),) if rate_per_s else ()
    known = traffic.Traffic(
        service_s=service_s,
        service_samples=100,
        slices=slices,
        since_s=end_s - 500,
        last_active_s=end_s,
    )
    return state.ScalerState(known=known)


def decide(
    what: observation.Observation,
    past: state.ScalerState | None = None,
    now_s: float = NOW_S,
    **changed: Any,
) -> record.Decision:
    """Decide with ``PARAMETERS``, some of them changed."""
    return scaling.decide(what, replace(PARAMETERS, **changed), past or busy(), now_s)[0]
