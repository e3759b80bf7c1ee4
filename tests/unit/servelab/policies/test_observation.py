"""What others see is what our own policies decide from."""

from modelserve.decide import observation as ours
from servelab.policies import observation

PARAMETERS = ours.Parameters(slots=8, cold_start_s=60.0, service_s=5.0)
READY = ours.ReplicaState.READY


def replica(name: str, state: ours.ReplicaState, load: float | None = None) -> ours.Replica:
    return ours.Replica(name, name, state, 0.0, ready_since_s=0.0, waiting=load, running=load)


def test_the_demand_is_ours_and_pods_keep_their_shares() -> None:
    replicas = (
        replica("a", READY, 3.0),
        replica("b", ours.ReplicaState.STARTING),
        replica("c", ours.ReplicaState.PENDING),
        replica("d", ours.ReplicaState.TERMINATING, 50.0),
    )
    signal = ours.GatewaySignal(live_gateways=1, held=4, refused_recently=2, arrivals=9)
    seen = observation.of(ours.Observation(replicas, signal, 3), PARAMETERS, 100.0)
    assert (seen.count, seen.demand, seen.waiting, seen.held) == (3, 12.0, 9.0, 6.0)
    assert (seen.ready, seen.arrivals, len(seen.staying)) == (1, 9, 3)
    assert [pod.load for pod in seen.pods] == [6.0, None, None, None]
    assert [pod.pending for pod in seen.pods] == [False, False, True, False]


def test_no_signal_is_no_figure() -> None:
    seen = observation.of(ours.Observation((), ours.GatewaySignal(), 1), PARAMETERS, 0.0)
    assert (seen.demand, seen.waiting) == (None, None)
