"""What a GPU's sensors read, from what the engine on it does.

Utilisation is the share of time in which the engine had work; memory traffic and tensor work follow
from its steps and tokens; power and temperature follow from those (the weights are our choice).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from modelserve.api import wire
from modelserve.catalog import constants, gpus
from modelserve.engines import kv, types
from servelab.engine import metering
from servelab.node.gpus import boards, devices

# What a CUDA context with its libraries takes (driver 570, Hopper: some 500 MiB).
CONTEXT_BYTES = 520 * gpus.MIB
# Kernels reach so much of the peak memory bandwidth at most.
MOST_TRAFFIC = 0.92
# How much busy kernels, memory traffic and tensor cores add to the idle power, as shares of the
# rest; a decode at full memory traffic comes to some 60 %, a prefill to the limit.
POWER_SHARES = (0.2, 0.45, 0.9)


@dataclass(frozen=True, slots=True)
class Activity:
    """Shares from 0 to 1 of a window of time."""

    busy: float = 0.0
    tensor: float = 0.0
    traffic: float = 0.0


IDLE = Activity()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a GPU: the pod, its container, and its process there, if one runs."""

    namespace: str
    pod: str
    container: str
    pid: int | None = None
    process: str = ""

    @property
    def container_key(self) -> tuple[str, str, str]:
        return (self.namespace, self.pod, self.container)


@dataclass(frozen=True, slots=True)
class Use:
    """What one container does with a GPU."""

    holder: Holder
    used_bytes: int = 0
    doing: Activity = IDLE
    xid: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU at one moment."""

    device: devices.Device
    gpu: gpus.Gpu
    used_bytes: int
    activity: Activity
    power_w: float
    temperature_c: int
    sm_mhz: int
    memory_mhz: int
    limit_w: float
    holders: tuple[Holder, ...] = ()
    xid: int = 0

    @property
    def holder(self) -> Holder | None:
        """The first that has it: an exporter names one."""
        return self.holders[0] if self.holders else None

    @property
    def total_bytes(self) -> int:
        return self.gpu.driver_memory_bytes

    @property
    def reserved_bytes(self) -> int:
        return constants.load().driver_reserve_bytes

    @property
    def free_bytes(self) -> int:
        return max(0, self.total_bytes - self.reserved_bytes - self.used_bytes)


def activity(
    before: metering.Load, now: metering.Load, took_s: float, launch: types.Launch, gpu: gpus.Gpu
) -> Activity:
    """What an engine did between two looks, ``took_s`` emulated seconds apart."""
    if took_s <= 0 or now.steps < before.steps:
        return IDLE
    busy = min(1.0, max(0.0, now.busy_s - before.busy_s) / took_s)
    model, ways = launch.model, launch.tensor_parallel
    steps = now.steps - before.steps
    tokens = now.tokens - before.tokens
    whole, experts, idle = model.read_terms(launch.quantization)
    weights = (whole - experts * idle ** max(1.0, tokens / max(1, steps))) / ways
    room = kv.room_bytes(model, gpu, ways, launch.quantization, launch.gpu_memory_utilization)
    read = steps * (weights + max(0, room) * now.kv_usage)
    peak = gpu.flops_16_bit * ways
    return Activity(
        busy,
        min(busy, 2 * model.active_parameters * tokens / (peak * took_s)),
        min(busy * MOST_TRAFFIC, read / (gpu.bandwidth_bytes_per_s * took_s)),
    )


def engine_bytes(launch: types.Launch, gpu: gpus.Gpu, stamps: wire.PhaseStamps, now_ms: int) -> int:
    """Memory that the engine holds on each of its GPUs at this stage of its start."""
    weights = launch.model.weight_bytes(launch.quantization) / launch.tensor_parallel
    loading = next((s for s in stamps.stamps if s.phase is wire.Phase.WEIGHT_LOAD), None)
    if loading is None or now_ms < loading.start_ms:
        return CONTEXT_BYTES
    if not loading.end_ms:
        planned_ms = (loading.expected_ms or loading.planned_ms) / stamps.time_scale
        share = min(1.0, (now_ms - loading.start_ms) / planned_ms) if planned_ms else 1.0
        return CONTEXT_BYTES + round(weights * share)
    if not any(s.phase in (wire.Phase.PROBE, wire.Phase.STARTED) for s in stamps.stamps):
        return CONTEXT_BYTES + round(weights)
    room = kv.room_bytes(
        launch.model,
        gpu,
        launch.tensor_parallel,
        launch.quantization,
        launch.gpu_memory_utilization,
        launch.engine,
    )
    return round(weights) + max(0, room) + constants.load().activation_reserve_bytes


def read(device: devices.Device, gpu: gpus.Gpu, uses: Sequence[Use] = ()) -> Reading:
    """The sensors of a GPU; several uses share it."""
    board = boards.of(gpu)
    doing = Activity(
        min(1.0, sum(each.doing.busy for each in uses)),
        min(1.0, sum(each.doing.tensor for each in uses)),
        min(MOST_TRAFFIC, sum(each.doing.traffic for each in uses)),
    )
    used_bytes = min(gpu.driver_memory_bytes, sum(each.used_bytes for each in uses))
    busy, traffic, tensor = POWER_SHARES
    heat = min(1.0, busy * doing.busy + traffic * doing.traffic + tensor * doing.tensor)
    # Neighbours in a chassis differ by a few degrees.
    place_c = device.index % 4 - 1
    return Reading(
        device,
        gpu,
        used_bytes,
        doing,
        board.idle_w + (board.limit_w - board.idle_w) * heat,
        board.idle_c + place_c + round((board.full_c - board.idle_c) * heat),
        board.sm_mhz if used_bytes else board.idle_sm_mhz,
        board.memory_mhz,
        board.limit_w,
        tuple(each.holder for each in uses),
        max((each.xid for each in uses), default=0),
    )


def seen_by(reading: Reading, key: tuple[str, str, str]) -> Reading:
    """The same as that container sees it: other containers' processes are not its own."""
    mine = tuple(each for each in reading.holders if each.container_key == key)
    return dataclasses.replace(reading, holders=mine)
