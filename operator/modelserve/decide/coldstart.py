"""What a cold start is made of and how long it takes, from launch, GPU, node rates and caches.

One function for two uses: the operator predicts with it, the emulator runs the same phases with
contention and jitter. Sizes are bytes, rates bytes per second, times seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from modelserve.api import quantities, status
from modelserve.catalog import gpus, images, layers, storage, warmup
from modelserve.decide import moving, nodefacts
from modelserve.engines import reading
from modelserve.engines.types import Launch

# Real schedulers bind a pod that fits within some tens of milliseconds.
SCHEDULING_S = 0.05
# Half of the 50 ms at which a holding gateway probes a starting engine.
PROBE_S = 0.025


class Part(StrEnum):
    """Named parts of a warm-up, in the order an engine goes through them."""

    PROCESS_START = "process start"
    DISTRIBUTED_INIT = "distributed init"
    COMPILE = "compile"
    PROFILE_RUN = "profile run"
    GRAPH_CAPTURE = "graph capture"
    API_SERVER = "API server"


# Parts an engine goes through before it reads weights.
BEFORE_WEIGHTS = (Part.PROCESS_START, Part.DISTRIBUTED_INIT)


@dataclass(frozen=True, slots=True)
class WarmUpPart:
    """A named part of the warm-up, in seconds."""

    name: Part
    duration_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The phases of a cold start from a bound pod on.

    In order: pull, ``before_weights``, weights, ``after_weights``; ``warm_up`` holds both.
    """

    pull: moving.Pull
    weights: moving.Transfer
    warm_up: tuple[WarmUpPart, ...]

    @property
    def before_weights(self) -> tuple[WarmUpPart, ...]:
        """Warm-up parts an engine goes through before it reads weights."""
        return tuple(part for part in self.warm_up if part.name in BEFORE_WEIGHTS)

    @property
    def after_weights(self) -> tuple[WarmUpPart, ...]:
        """Warm-up parts that need the weights."""
        return tuple(part for part in self.warm_up if part.name not in BEFORE_WEIGHTS)

    @property
    def warm_up_s(self) -> float:
        """Seconds of all warm-up parts."""
        return sum(part.duration_s for part in self.warm_up)


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The parts of a cold start in seconds, predicted or measured."""

    scheduling_s: float
    provisioning_s: float
    image_pull_s: float
    weight_load_s: float
    warm_up_s: float
    probe_s: float

    @property
    def total_s(self) -> float:
        """From the replica being wanted to its admission."""
        return (
            self.scheduling_s
            + self.provisioning_s
            + self.image_pull_s
            + self.weight_load_s
            + self.warm_up_s
            + self.probe_s
        )

    def parts(self) -> dict[str, float]:
        """The parts under the API's names, in order, ``totalSeconds`` last."""
        return {
            "schedulingSeconds": self.scheduling_s,
            "provisioningSeconds": self.provisioning_s,
            "imagePullSeconds": self.image_pull_s,
            "weightLoadSeconds": self.weight_load_s,
            "warmUpSeconds": self.warm_up_s,
            "probeSeconds": self.probe_s,
            "totalSeconds": self.total_s,
        }


def expected_s(predicted: ColdStart, measured: status.ColdStartParts | None) -> float:
    """T̂, how long the next cold start takes: measured means where earlier ones can tell.

    Whether the image is on the node, and whether a node has to come, is known of the next one.
    """
    if measured is None:
        return predicted.total_s
    of_the_place_s = measured.provisioning_seconds + measured.image_pull_seconds
    learnt_s = measured.total_seconds - of_the_place_s
    return predicted.provisioning_s + predicted.image_pull_s + learnt_s


def plan(
    launch: Launch, gpu: gpus.Gpu, rates: nodefacts.NodeRates, cache: nodefacts.CacheState
) -> Plan:
    """The phases of starting ``launch`` on a node of ``gpu`` with those rates and caches."""
    return Plan(
        pull=pull(launch, rates, cache),
        weights=weights(launch, gpu, rates, warm=cache.page_cached),
        warm_up=_warm_up(launch, cache),
    )


def predict(
    planned: Plan,
    provisioning_s: float = 0.0,
    scheduling_s: float = SCHEDULING_S,
    probe_s: float = PROBE_S,
) -> ColdStart:
    """How long the plan takes alone on its links; a node still to come adds ``provisioning_s``."""
    return ColdStart(
        scheduling_s=scheduling_s,
        provisioning_s=provisioning_s,
        image_pull_s=planned.pull.duration_s,
        weight_load_s=planned.weights.duration_s,
        warm_up_s=planned.warm_up_s,
        probe_s=probe_s,
    )


def explain(planned: Plan) -> str:
    """One line per part, with the numbers put in."""
    pull, weights = planned.pull, planned.weights
    size = quantities.format_bytes(pull.download.n_bytes)
    if pull.present:
        lines = [f"image pull {pull.duration_s:.1f} s: {size}, on the node already"]
    else:
        down = pull.download
        lines = [
            f"image pull {pull.duration_s:.1f} s: {size}, download {down.duration_s:.1f} s at "
            f"{_per_s(down.limit.bytes_per_s)} ({down.limit.binds}), unpack {pull.unpack_s:.1f} s "
            f"at {_per_s(pull.unpack_bytes_per_s)}, overlapped but for a layer"
        ]
    each = f"{weights.times} × " if weights.times > 1 else ""
    lines.append(
        f"weight load {weights.duration_s:.1f} s: {each}{quantities.format_bytes(weights.n_bytes)} "
        f"at {_per_s(weights.limit.bytes_per_s)} (limit: {weights.limit.binds})"
    )
    parts = ", ".join(f"{part.name} {part.duration_s:.1f} s" for part in planned.warm_up)
    lines.append(f"warm-up {planned.warm_up_s:.1f} s: {parts}")
    return "\n".join(lines)


def pull(launch: Launch, rates: nodefacts.NodeRates, cache: nodefacts.CacheState) -> moving.Pull:
    """The pull of its image on a node that has those layers of it, or all."""
    every = layers.of(launch.image, launch.image_bytes)
    there = cache.layers if not cache.image_present else {layer.digest for layer in every}
    return pull_of(layers.missing(every, there), rates, launch.image_bytes)


def pull_of(
    missing: Sequence[layers.Layer], rates: nodefacts.NodeRates, image_bytes: int
) -> moving.Pull:
    """The pull of an image of which these layers are missing; none: it is there."""
    moved = sum(layer.compressed_bytes for layer in missing)
    limits = [
        moving.Limit(moving.Binds.REGISTRY, rates.registry_bytes_per_s, shared=True),
        moving.Limit(moving.Binds.NETWORK, rates.network_bytes_per_s, shared=True),
    ]
    if rates.layer_bytes_per_s is not None:
        reached = rates.layer_bytes_per_s * layers.streams(missing)
        limits.append(moving.Limit(moving.Binds.STREAMS, reached, shared=False))
    largest = max((layer.compressed_bytes for layer in missing), default=0)
    return moving.Pull(
        present=not missing,
        download=moving.Transfer(moved if missing else image_bytes, tuple(limits)),
        unpack_bytes_per_s=rates.unpack_bytes_per_s,
        largest_layer_share=largest / moved if moved else 0.0,
        cached_s=images.pull_defaults().cached_s,
    )


def page_cacheable(launch: Launch) -> bool:
    """Whether reading the weights leaves them in the node's page cache: files, not objects."""
    return launch.storage_class is None or launch.storage_class.page_cache


def weights(
    launch: Launch, gpu: gpus.Gpu, rates: nodefacts.NodeRates, *, warm: bool = False
) -> moving.Transfer:
    """The weight read of all ranks: min of node's share, spec's rate, loader, PCIe to the GPUs.

    Each rank copies its own shard, and maps the files it is in: together they read the checkpoint
    once. Where each reads all of it, objects are read once a rank; files are read from their
    device once, and copied out of the page cache once a rank. ``warm``: from the node's page cache,
    if its storage has one.
    """
    ranks, read = launch.tensor_parallel, reading.of(launch)
    way, times = read.way, read.times
    pcie = ranks * gpu.pcie_bytes_per_s * warmup.host_to_gpu_share()
    limits = [moving.Limit(moving.Binds.PCIE, pcie, shared=False)]
    if way is storage.Way.DUMMY:
        return moving.Transfer(n_bytes=0, limits=tuple(limits))
    where = launch.storage_class
    if warm and page_cacheable(launch):
        where = storage.find("page-cache")
        limits.append(moving.Limit(moving.Binds.PAGE_CACHE, where.read_bytes_per_s, shared=True))
    else:
        limits += _storage_limits(launch, where, rates)
    if where is not None:
        ceiling = where.loader_bytes_per_s(way, ranks)
        limits.append(moving.Limit(moving.Binds.LOADER, ceiling, shared=False))
    if (times > 1 or way is storage.Way.PREFETCH) and page_cacheable(launch) and not warm:
        mapped = storage.Way.MAPPED if way is storage.Way.PREFETCH else way
        memory = storage.find("page-cache").loader_bytes_per_s(mapped, ranks)
        limits.append(moving.Limit(moving.Binds.PAGE_CACHE, memory / times, shared=False))
        times = 1
    return moving.Transfer(
        n_bytes=launch.model.weight_bytes(launch.quantization),
        limits=tuple(limits),
        latency_s=where.latency_s if where is not None else 0.0,
        times=times,
    )


def _storage_limits(
    launch: Launch, where: storage.StorageClass | None, rates: nodefacts.NodeRates
) -> list[moving.Limit]:
    device = rates.storage_read_bytes_per_s or (where.read_bytes_per_s if where else None)
    backend = rates.storage_shared_bytes_per_s or (where.shared_bytes_per_s if where else None)
    found = (
        (moving.Binds.SPEC, launch.read_bytes_per_s, False),
        (moving.Binds.STORAGE, device, True),
        (moving.Binds.SHARED_STORAGE, backend, True),
    )
    return [moving.Limit(binds, rate, shared) for binds, rate, shared in found if rate is not None]


def _warm_up(launch: Launch, cache: nodefacts.CacheState) -> tuple[WarmUpPart, ...]:
    """The catalogue's parts for this engine, scaled to the spec's total if it gives one."""
    known = warmup.of_engine(launch.engine)
    layers, ranks = launch.model.layers, launch.tensor_parallel
    eager = launch.enforce_eager
    compile_s = 0.0 if eager else known.compile_s(layers, ranks, cache.compile_cached)
    capture_s = 0.0 if eager else known.graph_capture_s(layers, ranks, launch.max_sequences)
    parts = (
        (Part.PROCESS_START, known.process_start_s),
        (Part.DISTRIBUTED_INIT, known.distributed_init_s(ranks)),
        (Part.COMPILE, compile_s),
        (Part.PROFILE_RUN, known.profile_run_s),
        (Part.GRAPH_CAPTURE, capture_s),
        (Part.API_SERVER, known.api_server_s),
    )
    total_s = sum(duration_s for _, duration_s in parts)
    factor = 1.0 if launch.warm_up_s is None else launch.warm_up_s / total_s
    return tuple(WarmUpPart(name, duration_s * factor) for name, duration_s in parts if duration_s)


def _per_s(bytes_per_s: float) -> str:
    return f"{quantities.format_bytes(bytes_per_s)}/s"
