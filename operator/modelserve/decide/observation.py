"""What the autoscaler decides from: replicas, the gateways' figures, and the parameters of a spec.

All times are emulated seconds of the same monotonic clock as ``now_s``; counts of requests are HTTP
requests. Nothing here is checked or cleaned: the decisions do that, and say what they left out.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from modelserve.api import spec as api
from modelserve.api import wire
from modelserve.decide import gaps, windows

DEFAULT_UP = windows.Direction(
    0.0,
    (windows.Rate(windows.Unit.PERCENT, 100, 15), windows.Rate(windows.Unit.PODS, 4, 15)),
)
NO_GAPS = gaps.Gaps()
# The time for a backlog, left out of the spec: so many times the root of a cold start in seconds.
DRAIN_ROOT = 2.0
DRAIN_LEAST_S = 10.0  # λ is measured over no less
DEFAULT_DOWN = windows.Direction(60.0, (windows.Rate(windows.Unit.PERCENT, 100, 15),))


class ReplicaState(StrEnum):
    """Where a pod of the Deployment is in its life, as Kubernetes and the gateways see it."""

    PENDING = "Pending"  # not bound to a node, the scheduler has not refused it
    UNSCHEDULABLE = "Unschedulable"  # the scheduler found no node
    STARTING = "Starting"  # bound, not ready yet
    ADMITTED = "Admitted"  # a gateway's probe found it ready, Kubernetes has not yet
    READY = "Ready"
    STUCK = "Stuck"  # crash-looping, image cannot be pulled, failed
    TERMINATING = "Terminating"


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod. Lateness, deadlines and long unschedulable times are judged by the decision.

    ``waiting`` and ``running`` are the engine's figures from a *fresh* sample, None without one.
    """

    uid: str
    name: str
    state: ReplicaState
    created_s: float
    node: str = ""
    # Starting since then: bound to its node, the container's restart after it had served, or its
    # node's return.
    started_s: float | None = None
    ready_since_s: float | None = None  # ready or admitted since
    expected_ready_s: float | None = None  # when it is expected to be ready; None: worked out
    predicted_s: float | None = None  # predicted cold start of this replica; None: the parameters'
    unschedulable_since_s: float | None = None
    in_flight: int = 0  # sum over live gateways
    waiting: float | None = None
    running: float | None = None
    deletion_cost: int | None = None  # as read from the pod; None if unset
    away: bool = False  # its node does not report: nobody knows how it is

    @property
    def serves(self) -> bool:
        """Whether gateways may send requests to it."""
        return self.state is ReplicaState.READY or self.state is ReplicaState.ADMITTED


@dataclass(frozen=True, slots=True)
class GatewaySignal:
    """What the live gateways say of one model, added up.

    ``arrivals``, ``completions`` and ``service_sum_s`` are what came since the last decision
    (see ``modelserve.decide.counters``); the others are what is now.
    """

    live_gateways: int = 0
    held: int = 0
    oldest_held_s: float = 0.0
    refused_recently: int = 0
    arrivals: int = 0
    completions: int = 0
    service_sum_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuRoom:
    """Where more replicas could go. ``replicas`` None: unknown, nothing is capped.

    ``replicas`` counts the further replicas that fit on nodes now, GPUs of terminating pods and of
    other pods taken as used. ``provision_s`` is a node's provisioning time where a pool can grow.
    """

    replicas: int | None = None
    can_grow: bool = False
    provision_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything one decision looks at."""

    replicas: tuple[Replica, ...]
    signal: GatewaySignal
    live_count: int  # the Deployment's spec.replicas
    written_count: int | None = None  # the last count we wrote; None: we never wrote one
    rollout_in_progress: bool = False
    wake: bool = False  # a new value of the wake annotation
    awake_until_s: float | None = None  # kept awake by hand until then
    fence_retry_s: float | None = None  # a gateway refused the fence: not before then

    @property
    def ready_count(self) -> int:
        """Replicas that take requests, whether Kubernetes calls them ready yet or not."""
        return sum(replica.serves for replica in self.replicas)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a spec, the catalogue and the measured cold starts make of the rules; all resolved."""

    slots: int  # requests one replica works on at a time
    cold_start_s: float  # T̂
    service_s: float  # first estimate of Ŝ, from the engine's step law
    min_replicas: int = 0
    max_replicas: int = 8
    mode: api.Mode = api.Mode.AUTO
    manual_replicas: int = 1
    policy: api.Policy = api.Policy.COMMITTED
    utilization: float = 0.8
    target_queue_depth: float = 0.0  # 0: slots × utilization
    counts: api.QueueDepthCounts = api.QueueDepthCounts.DEMAND
    drain_goal_s: float = 0.0  # 0: max(10, 2 · √T̂)
    activation_replicas: int = 1
    buffer_replicas: int = 0
    burst_headroom: float = 0.0  # slots for each request at once
    tolerance: float = 0.1
    up: windows.Direction = DEFAULT_UP
    down: windows.Direction = DEFAULT_DOWN
    cooldown_s: float = 300.0
    fallback_replicas: int | None = None  # no fewer when nothing is known; None: hold
    drain_s: float = 120.0
    progress_deadline_s: float = 600.0
    snapshot_s: float = 1.0  # emulated length of the real second between two gateway snapshots
    sample_grace_s: float = 3.0  # a replica ready for less may lack its first sample
    gpus: GpuRoom = GpuRoom()

    @property
    def target(self) -> float:
        """QueueDepth's requests per replica."""
        return self.target_queue_depth or max(1.0, self.slots * self.utilization)

    @property
    def fallback_after_s(self) -> float:
        """Seconds without any figures before fallbackReplicas act: as a Lease takes to lapse."""
        return wire.LEASE_LAPSE_REAL_S / wire.SNAPSHOT_REAL_S * self.snapshot_s

    @property
    def goal_s(self) -> float:
        """Seconds in which a backlog should be worked off once supply is there.

        A replica that only drains costs its cold start T̂, and saves waits that shrink with the
        time d the backlog takes: cost and waits together, T̂/d + d, are least at a d that grows
        with √T̂, however long the backlog.
        """
        return self.drain_goal_s or max(DRAIN_LEAST_S, DRAIN_ROOT * math.sqrt(self.cold_start_s))

    @classmethod
    def of(
        cls,
        spec: api.ModelServeSpec,
        *,
        slots: int,
        cold_start_s: float,
        service_s: float,
        gpus: GpuRoom | None = None,
        time_scale: float = 1.0,
        idle: gaps.Gaps = NO_GAPS,
        predicted_s: float | None = None,
    ) -> Self:
        """Resolve what the spec leaves out.

        ``cold_start_s`` is T̂: the measured mean, else the prediction. ``predicted_s`` is the
        prediction alone (default: T̂) and sets the default progress deadline. ``idle`` are the
        model's own idle gaps, for a cooldown that the spec leaves out.
        """
        scaling = spec.scaling
        down_s = scaling.scale_down.stabilization_window_seconds
        return cls(
            slots=max(1, slots),
            cold_start_s=max(1.0, cold_start_s),
            service_s=max(0.01, service_s),
            min_replicas=scaling.min_replicas,
            max_replicas=max(scaling.max_replicas, scaling.min_replicas),
            mode=scaling.mode,
            manual_replicas=spec.replicas,
            policy=scaling.policy,
            utilization=scaling.target_utilization or 1.0,
            target_queue_depth=scaling.target_queue_depth or 0.0,
            counts=scaling.queue_depth_counts,
            drain_goal_s=scaling.drain_goal_seconds or 0.0,
            activation_replicas=min(scaling.activation_replicas, scaling.max_replicas),
            buffer_replicas=scaling.buffer_replicas,
            burst_headroom=scaling.burst_headroom,
            tolerance=scaling.tolerance,
            up=_direction(scaling.scale_up, 0.0),
            down=_direction(
                scaling.scale_down, max(60.0, cold_start_s / 2) if down_s is None else down_s
            ),
            cooldown_s=cooldown_s(scaling.cooldown_seconds, cold_start_s, idle),
            fallback_replicas=scaling.fallback_replicas,
            drain_s=spec.drain_seconds,
            progress_deadline_s=progress_deadline_s(spec, predicted_s or cold_start_s),
            snapshot_s=wire.SNAPSHOT_REAL_S * time_scale,
            sample_grace_s=wire.SCRAPE_STALE_REAL_S * time_scale,
            gpus=gpus or GpuRoom(),
        )


def progress_deadline_s(spec: api.ModelServeSpec, predicted_s: float) -> float:
    """Seconds after which a starting replica counts as stuck: the spec's, or worked out."""
    given = spec.cold_start.progress_deadline_seconds
    return max(600.0, 3 * predicted_s) if given is None else float(given)


def cooldown_s(wanted_s: float | None, cold_start_s: float, idle: gaps.Gaps) -> float:
    """Quiet seconds before the last replica goes.

    Left out of the spec: the p99 of the model's idle gaps within [T̂, max(300, T̂)], and the upper
    end until it is known (see ``gaps``).
    """
    if wanted_s is not None:
        return wanted_s
    longest_s = max(300.0, cold_start_s)
    worth_s = idle.worth_s(longest_s)
    return longest_s if worth_s is None else min(max(worth_s, cold_start_s), longest_s)


def _direction(behavior: api.Behavior, default_window_s: float) -> windows.Direction:
    window_s = behavior.stabilization_window_seconds
    return windows.Direction(
        default_window_s if window_s is None else float(window_s), _rates(behavior.policies)
    )


def _rates(policies: Iterable[api.RatePolicy]) -> tuple[windows.Rate, ...]:
    return tuple(
        windows.Rate(windows.Unit(p.type), float(p.value), float(p.period_seconds))
        for p in policies
    )
