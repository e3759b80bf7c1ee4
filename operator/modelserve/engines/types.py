"""What all engines have in common: how one is launched, what it exposes, how it refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from modelserve.api.spec import BatchingMode as BatchingMode
from modelserve.api.spec import EngineType as EngineType
from modelserve.api.spec import Loader as Loader
from modelserve.api.spec import Quantization as Quantization
from modelserve.catalog import storage
from modelserve.catalog.architecture import Model

# Share of GPU memory that a ModelServe gives its engine (catalogue constants).
DEFAULT_GPU_MEMORY_UTILIZATION = 0.9


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """What a user or the operator asks for; None where the catalogue is to say."""

    engine: EngineType
    model: Model
    served_name: str
    tensor_parallel: int
    quantization: Quantization
    max_sequences: int
    max_batched_tokens: int
    max_model_tokens: int
    port: int
    image: str
    batching: BatchingMode = BatchingMode.CONTINUOUS
    queue_limit: int | None = None
    storage_class: str | None = None
    read_bytes_per_s: float | None = None
    loader: Loader = Loader.DEFAULT
    image_bytes: int | None = None
    warm_up_s: float | None = None
    gpu_memory_utilization: float = DEFAULT_GPU_MEMORY_UTILIZATION
    enforce_eager: bool = False
    prefix_caching: bool = True
    kv_dtype_bytes: int = 2
    extra_args: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """An engine as it is started, everything resolved. Sizes are bytes, rates bytes per second.

    ``storage_class`` is None where only a read rate is known, ``read_bytes_per_s`` where only a
    class is; ``warm_up_s`` overrides the catalogue; ``queue_limit`` None means no bound.
    ``options`` are what only this engine has, by its own names; ``kv_dtype_bytes`` is 1 for an fp8
    KV cache.
    """

    engine: EngineType
    model: Model
    served_name: str
    tensor_parallel: int
    quantization: Quantization
    max_sequences: int
    max_batched_tokens: int
    max_model_tokens: int
    port: int
    image: str
    image_bytes: int
    image_unpacked_bytes: int
    image_largest_layer_share: float
    batching: BatchingMode
    queue_limit: int | None
    storage_class: storage.StorageClass | None
    read_bytes_per_s: float | None
    loader: Loader
    warm_up_s: float | None
    gpu_memory_utilization: float
    enforce_eager: bool
    prefix_caching: bool
    kv_dtype_bytes: int = 2
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """A container's image, command, args and env, and the pod's annotations."""

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Words:
    """What an engine module makes of a LaunchSpec; ``limits`` is what its words cannot carry."""

    command: tuple[str, ...]
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What an engine module reads from a container; None where the container does not say."""

    model: str | None = None
    served_name: str | None = None
    tensor_parallel: int | None = None
    quantization: Quantization | None = None
    max_sequences: int | None = None
    max_batched_tokens: int | None = None
    max_model_tokens: int | None = None
    port: int | None = None
    queue_limit: int | None = None
    loader: Loader | None = None
    gpu_memory_utilization: float | None = None
    enforce_eager: bool = False
    prefix_caching: bool = True
    kv_dtype_bytes: int = 2
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Defaults:
    """What an engine does when its command line says nothing."""

    max_sequences: int
    max_batched_tokens: int
    port: int
    gpu_memory_utilization: float = DEFAULT_GPU_MEMORY_UTILIZATION


@dataclass(frozen=True, slots=True)
class Series:
    """A time series: name in the text format (counters with their ending) and the labels to match.

    Of a histogram it is the base name, without ``_bucket``, ``_sum``, ``_count``. ``before`` is
    what earlier versions called it.
    """

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    before: str | None = None


@dataclass(frozen=True, slots=True)
class MetricNames:
    """An engine's metric names by meaning; None where it has no such metric.

    ``from_first_use``: it exports a series once it has used it; until then a figure is 0.
    """

    running: Series
    waiting: Series
    kv_usage: Series | None = None
    ttft: Series | None = None
    itl: Series | None = None
    e2e: Series | None = None
    queue_time: Series | None = None
    prompt_tokens: Series | None = None
    generation_tokens: Series | None = None
    success: Series | None = None
    preemptions: Series | None = None
    start_up: Series | None = None
    from_first_use: bool = False


class WhileLoading(StrEnum):
    """What a client meets before the engine is ready."""

    REFUSED = "connection refused"
    UNAVAILABLE = "503"


@dataclass(frozen=True, slots=True)
class Profile:
    """The outside of an engine. ``metrics_port`` is None where metrics share the API's port."""

    engine: EngineType
    title: str
    version: str
    metrics: MetricNames
    health_path: str
    startup_path: str
    metrics_path: str
    metrics_port: int | None
    default_port: int
    queue_full_status: int
    while_loading: WhileLoading
    listens_while_draining: bool = False  # it takes requests until none is left
