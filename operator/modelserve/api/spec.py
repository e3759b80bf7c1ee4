"""The ModelServe a user writes: spec of modelserve.dev/v1alpha1 as frozen pydantic models.

Descriptions carry units and become the CRD's; defaults are the API's. Fields marked "not yet
acting" are accepted and kept, and come into force in a later release.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from modelserve.api import template as templates
from modelserve.api.schema import Bytes, Name, Node, Rate, Rule, Seconds, Window, rules


class Quantization(StrEnum):
    NONE = "none"
    FP8 = "fp8"
    INT4 = "int4"


class EngineType(StrEnum):
    VLLM = "vllm"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    TGI = "tgi"
    TRITON = "triton"
    NIM = "nim"


class BatchingMode(StrEnum):
    CONTINUOUS = "continuous"
    STATIC = "static"
    DYNAMIC = "dynamic"
    NONE = "none"


class Loader(StrEnum):
    DEFAULT = "default"
    STREAMING = "streaming"


class Policy(StrEnum):
    COMMITTED = "Committed"
    QUEUE_DEPTH = "QueueDepth"


class QueueDepthCounts(StrEnum):
    DEMAND = "Demand"
    WAITING = "Waiting"


class Mode(StrEnum):
    AUTO = "Auto"
    MANUAL = "Manual"
    SCALE_UP_ONLY = "ScaleUpOnly"
    DRY_RUN = "DryRun"


class CustomModel(Node):
    """Shape of a model the catalogue lacks."""

    parameters: int | None = Field(None, ge=1, description="Parameters in all.")
    layers: int | None = Field(None, ge=1, le=1000, description="Transformer layers.")
    hidden: int | None = Field(None, ge=1, le=1_000_000, description="Hidden size.")
    intermediate: int | None = Field(
        None, ge=1, le=10_000_000, description="Width of the feed-forward part."
    )
    heads: int | None = Field(None, ge=1, le=10_000, description="Attention heads.")
    kv_heads: int | None = Field(None, ge=1, le=10_000, description="Key/value heads.")
    head_dim: int | None = Field(None, ge=1, le=10_000, description="Size of one head.")
    vocab: int | None = Field(None, ge=1, le=10_000_000, description="Vocabulary entries.")
    tied_embeddings: bool | None = Field(
        None, description="Whether input and output embedding are one table."
    )
    max_context: int | None = Field(
        None, ge=1, le=100_000_000, description="Longest context, in tokens."
    )


class Model(Node):
    """Which model is served, and as what."""

    name: Name = Field(description="Hub name of a catalogue entry, or any name with `custom`.")
    served_name: Name | None = Field(
        None, description="What clients send as `model`; left out: metadata.name."
    )
    quantization: Quantization = Field(Quantization.NONE, description="Format of the weights.")
    custom: CustomModel | None = Field(
        None, description="Shape of the model where the catalogue has none."
    )


class Batching(Node):
    """How the engine forms batches."""

    mode: BatchingMode = Field(BatchingMode.CONTINUOUS, description="How batches are formed.")
    max_sequences: Annotated[int, Field(ge=1, le=4096)] = Field(
        32, description="Batch limit of one replica, in sequences: a replica's slots."
    )
    max_batched_tokens: Annotated[int, Field(ge=1, le=1_048_576)] = Field(
        8192, description="Most tokens one step computes."
    )


class EnvVar(Node):
    """An environment variable of the engine."""

    name: Name
    value: Annotated[str, Field(max_length=32_768)] = ""


class Engine(Node):
    """The server process in each replica."""

    type: EngineType = Field(
        EngineType.VLLM,
        description="Which engine serves; emulated with its own API, errors and metrics.",
    )
    image: Annotated[str, Field(min_length=1, max_length=512)] | None = Field(
        None, description="Container image; left out: the engine's own."
    )
    batching: Batching = Batching()
    max_model_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = Field(
        None, description="Longest prompt and answer, in tokens; left out: 8192, or the context."
    )
    queue_limit: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        1000, description="Waiting requests past which the engine refuses."
    )
    args: list[Annotated[str, Field(max_length=4096)]] = Field(
        default=[], max_length=64, description="Further arguments, passed through."
    )
    env: list[EnvVar] = Field(default=[], max_length=64, description="Environment variables.")


class Gpu(Node):
    """The GPUs of one replica."""

    product: Name = Field(
        description="GPU product label (nvidia.com/gpu.product), catalogue key or alias."
    )
    tensor_parallel: int = Field(
        1, ge=1, le=8, description="GPUs of one replica, on one node: 1, 2, 4 or 8."
    )
    model_config = Node.model_config | ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.tensorParallel in [1, 2, 4, 8]",
                "gpu.tensorParallel must be 1, 2, 4 or 8: the GPUs of one replica sit on one node",
                ".tensorParallel",
            )
        )
    )


class Storage(Node):
    """Where the weights are read from."""

    class_: Name | None = Field(
        None, alias="class", description="Storage class of the catalogue, such as nvme or s3."
    )
    read_bandwidth: Rate | None = Field(
        None, description="Most one replica reads, in bytes per second, such as 2GB/s."
    )
    loader: Loader = Field(
        Loader.DEFAULT, description="What the engine's loader reaches of the device."
    )


class ColdStart(Node):
    """What is known better than the catalogue does."""

    image_size: Bytes | None = Field(None, description="Compressed size of the image, in bytes.")
    warm_up_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = Field(
        None, description="Engine start without the weight load, in seconds."
    )
    provisioning_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = Field(
        None, description="Of a node to be brought while there is none; left out: as measured."
    )
    progress_deadline_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = Field(
        None, description="Starting for longer is stuck; left out: max(600, 3 × predicted)."
    )


class RatePolicy(Node):
    """How much a period may change the count, as in the HorizontalPodAutoscaler."""

    type: Literal["Percent", "Pods"] = Field(description="Unit of `value`.")
    value: Annotated[int, Field(ge=1, le=100_000)] = Field(description="Change allowed per period.")
    period_seconds: Annotated[int, Field(ge=1, le=1800)] = Field(
        15, description="Length of the period, in seconds."
    )


class Behavior(Node):
    """Window and rates in one direction."""

    stabilization_window_seconds: Window | None = Field(
        None,
        description="The highest recommendation of so many seconds holds; at most 3600; left out: "
        "max(60, half a cold start). Committed leaves out what a passing backlog took.",
    )
    policies: list[RatePolicy] = Field(
        default=[RatePolicy(type="Percent", value=100, period_seconds=15)],
        max_length=8,
        description="Rate limits; the one that allows most counts.",
    )


class ScaleUp(Behavior):
    """Growth: at once, doubling or by four every 15 s, as the HorizontalPodAutoscaler's default."""

    stabilization_window_seconds: Window | None = Field(
        0, description="Growth follows the lowest recommendation of so many seconds; at most 3600."
    )
    policies: list[RatePolicy] = Field(
        default=[
            RatePolicy(type="Percent", value=100, period_seconds=15),
            RatePolicy(type="Pods", value=4, period_seconds=15),
        ],
        max_length=8,
        description="Rate limits; the one that allows most counts.",
    )


class Scaling(Node):
    """How the replica count follows demand."""

    min_replicas: Annotated[int, Field(ge=0, le=1000)] = Field(0, description="Fewest replicas.")
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = Field(8, description="Most replicas.")
    policy: Policy = Field(Policy.COMMITTED, description="The rule that decides.")
    target_utilization: Annotated[float, Field(ge=0, le=100)] = Field(
        0.8,
        description="Share of a replica's slots to plan with, up to 2; over 1 requests queue.",
    )
    target_queue_depth: Annotated[float, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="QueueDepth: requests of one replica; left out: slots × utilization."
    )
    queue_depth_counts: QueueDepthCounts = Field(
        QueueDepthCounts.DEMAND,
        description="QueueDepth counts held + waiting + running, or held + waiting only.",
    )
    drain_goal_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        None, description="Committed: seconds for a backlog; left out: max(10, 2 × √cold start)."
    )
    activation_replicas: Annotated[int, Field(ge=1, le=1000)] = Field(
        1, description="Replicas a wake from zero starts with."
    )
    tolerance: Annotated[float, Field(ge=0, le=1)] = Field(
        0.1, description="Relative deviation from the target that is left alone."
    )
    scale_up: ScaleUp = ScaleUp()
    scale_down: Behavior = Behavior()
    cooldown_seconds: Seconds | None = Field(
        None,
        description="Quiet seconds before the last replica goes; left out: learnt from idle gaps, "
        "from a cold start to max(300, cold start).",
    )
    mode: Mode = Field(
        Mode.AUTO, description="Auto, Manual (spec.replicas acts), ScaleUpOnly or DryRun."
    )
    buffer_replicas: Annotated[int, Field(ge=0, le=1000)] = Field(
        0, description="Spare replicas while the model is active."
    )
    burst_headroom: Annotated[float, Field(ge=0, le=10)] = Field(
        0.0,
        description="Committed: slots to have for each request at once, which the down window "
        "then keeps; 0: none for what is gone within a cold start.",
    )
    fallback_replicas: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None, description="No fewer replicas once no signal can be read; left out: hold."
    )
    model_config = Node.model_config | ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.minReplicas <= self.maxReplicas",
                "scaling.minReplicas must not be greater than scaling.maxReplicas: "
                "lower the one or raise the other",
                ".minReplicas",
            ),
            Rule(
                "self.targetUtilization > 0.0 && self.targetUtilization <= 2.0",
                "scaling.targetUtilization must be over 0 and at most 2: "
                "it is the share of a replica's slots to plan with",
                ".targetUtilization",
            ),
            Rule(
                "!has(self.targetQueueDepth) || self.targetQueueDepth >= 1.0",
                "scaling.targetQueueDepth must be at least 1: "
                "the requests one replica should carry",
                ".targetQueueDepth",
            ),
            Rule(
                "!has(self.scaleUp.stabilizationWindowSeconds) || "
                "self.scaleUp.stabilizationWindowSeconds <= 3600",
                "scaling.scaleUp.stabilizationWindowSeconds must be at most 3600",
                ".scaleUp",
            ),
            Rule(
                "!has(self.scaleDown.stabilizationWindowSeconds) || "
                "self.scaleDown.stabilizationWindowSeconds <= 3600",
                "scaling.scaleDown.stabilizationWindowSeconds must be at most 3600",
                ".scaleDown",
            ),
            Rule(
                "self.activationReplicas <= self.maxReplicas",
                "scaling.activationReplicas must not be greater than scaling.maxReplicas",
                ".activationReplicas",
            ),
        )
    )


class Hold(Node):
    """Bounds of what a gateway holds for this model."""

    max_requests: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        1000, description="Most requests held by one gateway."
    )
    max_bytes: Bytes = Field("256MiB", description="Most bytes of held request bodies.")
    max_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        600, description="Longest hold of one request, in real seconds."
    )


class Overflow(StrEnum):
    REJECT = "Reject"


class Gateway(Node):
    """How requests are held and released."""

    hold: Hold = Hold()
    overflow: Overflow = Field(
        Overflow.REJECT, description="Past the bounds: 429 or 503 with Retry-After."
    )
    keep_alive_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        10, description="Real seconds between SSE comments to held streams; 0 switches them off."
    )
    slots_per_replica: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        None, description="Most requests sent to one replica; left out: maxSequences."
    )


class ModelServeSpec(Node):
    """A model, the engine and GPUs that serve it, and how it scales."""

    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="Replicas in mode Manual; what `kubectl scale` and an HPA drive."
    )
    model: Model
    engine: Engine = Engine()
    gpu: Gpu
    storage: Storage = Storage()
    cold_start: ColdStart = ColdStart()
    scaling: Scaling = Scaling()
    gateway: Gateway = Gateway()
    drain_seconds: Annotated[int, Field(ge=0, le=86_400)] = Field(
        120, description="Seconds a leaving replica gets to finish its streams."
    )
    template: templates.Template = templates.Template()
    model_config = Node.model_config | ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.model.custom) || has(self.storage) && "
                "(has(self.storage.class) || has(self.storage.readBandwidth))",
                "a model with `custom` needs storage.class or storage.readBandwidth: "
                "say how fast its weights can be read",
            )
        )
    )
