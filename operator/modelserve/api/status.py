"""What is reported: status and conditions of ModelServe and of GPUPool."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from modelserve.api.schema import Node

Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
Message = Annotated[str, Field(max_length=32_768)]


class ConditionType(StrEnum):
    """Condition types of a ModelServe; Reconciling and Stalled are there only while they apply."""

    READY = "Ready"
    AVAILABLE = "Available"
    ACTIVE = "Active"
    ABLE_TO_SCALE = "AbleToScale"
    SCALING_LIMITED = "ScalingLimited"
    METRICS_AVAILABLE = "MetricsAvailable"
    DEGRADED = "Degraded"
    CONFLICT = "Conflict"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class EventReason(StrEnum):
    """Reasons of the Events a ModelServe gets; stable."""

    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    SCALED_TO_ZERO = "ScaledToZero"
    ACTIVATED = "Activated"
    COLD_START_FINISHED = "ColdStartFinished"
    SCALING_LIMITED = "ScalingLimited"
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    REPLICA_STUCK = "ReplicaStuck"
    DRAIN_TIMED_OUT = "DrainTimedOut"
    INVALID_SPEC = "InvalidSpec"
    CONFLICT = "Conflict"


class Condition(Node):
    """A condition, as in metav1.Condition."""

    type: Annotated[str, Field(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(max_length=1024)] = ""
    message: Message = ""
    last_transition_time: Time | None = None
    observed_generation: int | None = None


class DemandStatus(Node):
    """Demand in requests, as last written."""

    queued: int = Field(0, description="held + waiting")
    held: int = Field(0, description="Held by gateways.")
    waiting: int = Field(0, description="Waiting in engines.")
    running: int = Field(0, description="In engines' batches.")
    total: int = Field(0, description="Demand the decision was made from.")


class ColdStartParts(Node):
    """A cold start by part, in emulated seconds."""

    scheduling_seconds: float = 0
    provisioning_seconds: float = 0
    image_pull_seconds: float = 0
    weight_load_seconds: float = 0
    warm_up_seconds: float = 0
    probe_seconds: float = 0
    total_seconds: float = 0
    samples: int | None = Field(None, description="Measured cold starts behind these means.")


class ColdStartStatus(Node):
    """Predicted and measured cold start."""

    predicted: ColdStartParts | None = None
    measured: ColdStartParts | None = None
    last: ColdStartParts | None = Field(None, description="The newest measured one.")


class ScaleRecord(Node):
    """One change of the replica count, with its reason."""

    from_: int = Field(alias="from")
    to: int
    reason: Annotated[str, Field(max_length=128)] = ""
    message: Message = ""
    at: Time | None = None
    inputs: dict[str, float] = Field(default={}, description="The numbers the decision used.")


class AutoscalerStatus(Node):
    """What survives an operator restart."""

    arrival_rate: float = Field(0, description="Requests per emulated second.")
    mean_arrival_rate: float = Field(0, description="Long-run mean, per emulated second.")
    burst_square: float = Field(0, description="Sum of squared deviations from the mean.")
    burst_persisted: float = Field(
        0, description="The same times the share that was still there a cold start later."
    )
    drained_requests: float = Field(0, description="Requests ended while replicas were full.")
    drained_seconds: float = Field(0, description="Emulated replica-seconds of that.")
    service_seconds: float = Field(0, description="Estimated service time, in emulated seconds.")
    service_samples: int = 0
    cold_start_seconds: float = Field(0, description="Estimated cold start, in emulated seconds.")
    idle_gaps: list[int] = Field(
        default=[], max_length=64, description="Counts of idle gaps by length class."
    )
    down_window: list[list[float]] = Field(
        default=[], max_length=512, description="[seconds ago, recommendation] in the down window."
    )
    up_window: list[list[float]] = Field(
        default=[], max_length=512, description="[seconds ago, recommendation] in the up window."
    )
    scale_steps: list[list[float]] = Field(
        default=[], max_length=512, description="[seconds ago, change] within the rates' periods."
    )
    last_request_seconds_ago: float | None = Field(
        None, description="Emulated seconds since the last request's end, when this was written."
    )
    last_request_at: Time | None = None
    written_replicas: int | None = Field(None, description="Last count written to /scale.")
    wait_seconds: float | None = Field(
        None, description="Wait a new request must expect, in real seconds; for Retry-After."
    )


class GpuStatus(Node):
    """GPUs of this model."""

    per_replica: int = 0
    in_use: int = 0


class ModelServeStatus(Node):
    """What is, why, and what comes next."""

    observed_generation: int | None = None
    selector: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="Label selector of the pods, for /scale."
    )
    replicas: int = Field(0, description="Pods that are not terminating.")
    desired_replicas: int = 0
    ready_replicas: int = 0
    starting_replicas: int = 0
    stuck_replicas: int = 0
    draining_replicas: int = 0
    ignored_replicas: int | None = Field(None, description="spec.replicas that is not in force.")
    demand: DemandStatus | None = None
    waiting_for: Message | None = Field(None, description="What the next ready replica waits for.")
    cold_start: ColdStartStatus | None = None
    next_ready_at: Time | None = Field(None, description="When the next replica should be ready.")
    scale_down_at: Time | None = Field(
        None, description="When the next shrink may happen if demand stays as it is."
    )
    last_scale: ScaleRecord | None = None
    history: list[ScaleRecord] = Field(
        default=[], max_length=10, description="Changes of the count, newest first."
    )
    autoscaler: AutoscalerStatus | None = None
    gpu: GpuStatus | None = None
    conditions: list[Condition] = Field(
        default=[],
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )


class BootingNode(Node):
    """A machine on its way."""

    node: str
    up_at: str = Field(description="When its Node appears, RFC 3339; its GPUs follow.")


class IdleNode(Node):
    """A node without a pod, in an elastic pool that may spare one."""

    node: str
    since: str = Field(description="RFC 3339; after the pool's idleSeconds it goes.")


class GPUPoolStatus(Node):
    """Nodes and GPUs of a pool."""

    observed_generation: int | None = None
    nodes: int = 0
    ready_nodes: int = 0
    provisioning_nodes: int = Field(0, description="Asked for, without GPUs yet.")
    booting: list[BootingNode] = Field(
        default=[], description="Machines that were asked for and have no Node yet."
    )
    idle: list[IdleNode] = Field(
        default=[], description="Nodes without a pod, of an elastic pool that may spare one."
    )
    draining_nodes: int = Field(0, description="On their way out.")
    gpus: int = 0
    gpus_in_use: int = 0
    conditions: list[Condition] = Field(
        default=[],
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )
