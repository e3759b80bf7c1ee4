"""What the operator decides in the hand-shake's world: the product's own decision."""

import functools
from collections import Counter
from typing import Any

from modelserve.api import wire
from modelserve.decide import counters, observation, scaling, state, traffic, windows
from modelserve.testing.handshake import world as worlds
from modelserve.testing.handshake.world import RUNNING, Pod, World

State = observation.ReplicaState
NOW = observation.Parameters(
    slots=2, cold_start_s=1, service_s=1, cooldown_s=0, down=windows.Direction(0.0), snapshot_s=0.01
)
QUIET = state.ScalerState(
    known=traffic.Traffic(last_active_s=-1e4),
    live_count=1,
    recommendations=(windows.Recommended(-1e4, 0),),
)


def decided(world: World) -> Any:
    """The product's decision from what the gateways told last."""
    told = tuple((gateway.epoch, gateway.told) for gateway in world.gateways)
    running = tuple(sorted(uid for _, uid, what in world.requests if what == RUNNING))
    return _decision(told, running, world.pods, world.replicas, world.now_s)


@functools.lru_cache(maxsize=100_000)
def _decision(
    gateways: tuple[tuple[int, worlds.Told], ...],
    busy: tuple[str, ...],
    pods: tuple[Pod, ...],
    replicas: int,
    now_s: float,
) -> Any:
    snapshots = [
        wire.DemandSnapshot(
            str(number),
            str(epoch),
            0,
            (wire.ModelDemand("default", "m", held, in_flight=dict(in_flight)),),
        )
        for number, (epoch, (held, in_flight)) in enumerate(gateways)
    ]
    merged, _ = counters.merge(snapshots, "default", "m", counters.Counters())
    running = Counter(busy)
    found = tuple(
        observation.Replica(
            pod.uid,
            pod.uid,
            State.TERMINATING if pod.going else State.READY if pod.ready else State.STARTING,
            0.0,
            in_flight=merged.in_flight.get(pod.uid, 0),
            waiting=0.0 if pod.ready else None,
            running=float(running[pod.uid]) if pod.ready else None,
        )
        for pod in pods
    )
    seen = observation.Observation(found, merged.signal, replicas, replicas)
    past = QUIET._replace(live_count=replicas)
    return scaling.decide(seen, NOW, past, now_s)[0]
