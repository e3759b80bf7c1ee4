"""Processor time and memory of containers and nodes, modelled from what engines do (pure).

There are no processes to measure. The same load gives the same figures; the rates are our choice,
after what vLLM takes on hosts with one engine. Seconds are real ones.
"""

from dataclasses import dataclass

from servelab.engine import metering

MIB = 1024 * 1024
GIB = 1024 * MIB

# A container without an engine: it sleeps.
PLAIN_CORES = 0.0005
PLAIN_BYTES = 12 * MIB
# An engine: imports, loading and compiling; then its API server and its heartbeat when idle.
STARTING_CORES = 1.2
IDLE_CORES = 0.03
# While steps run the core's loop and one worker a GPU spin.
CORE_BUSY_CORES = 0.6
RANK_BUSY_CORES = 1.0
# The API server turns tokens into text and JSON.
TOKEN_CPU_S = 40e-6
ENGINE_BYTES = int(2.6 * GIB)
RANK_BYTES = int(1.7 * GIB)
# A node without pods, and what kubelet and runtime add for each.
NODE_CORES = 0.12
NODE_BYTES = int(1.4 * GIB)
POD_CORES = 0.0008
POD_BYTES = 18 * MIB


@dataclass(frozen=True, slots=True)
class Engine:
    """What an engine's use follows from. ``starting_s`` is how long its start took so far."""

    ranks: int
    starting_s: float
    load: metering.Load
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """A container's own, if it has any."""

    cores: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds since the start, and the working set."""

    cpu_s: float
    memory_bytes: int
    started_unix_s: float


NO_LIMITS = Limits()


def container(
    started_unix_s: float,
    now_unix_s: float,
    engine: Engine | None = None,
    limits: Limits = NO_LIMITS,
) -> Usage:
    """A running container's use. A limit holds it back as a real one would."""
    age_s = max(0.0, now_unix_s - started_unix_s)
    cpu_s, memory = PLAIN_CORES * age_s, PLAIN_BYTES
    if engine is not None:
        memory = ENGINE_BYTES + RANK_BYTES * engine.ranks
        starting_s = min(engine.starting_s, age_s)
        busy = CORE_BUSY_CORES + RANK_BUSY_CORES * engine.ranks
        cpu_s = STARTING_CORES * starting_s + IDLE_CORES * (age_s - starting_s)
        cpu_s += (busy * engine.load.busy_s + TOKEN_CPU_S * engine.load.tokens) / engine.scale
    if limits.cores is not None:
        cpu_s = min(cpu_s, limits.cores * age_s)
    if limits.memory_bytes is not None:
        memory = min(memory, limits.memory_bytes)
    return Usage(cpu_s, memory, started_unix_s)


def pod(containers: list[Usage]) -> tuple[float, int]:
    """Processor seconds and working set of a pod: its containers' and its sandbox's."""
    return sum(each.cpu_s for each in containers), sum(each.memory_bytes for each in containers)


def node(
    pods: list[tuple[float, int]],
    began_unix_s: float,
    now_unix_s: float,
    capacity: tuple[float, int],
) -> Usage:
    """A node's use: its pods', its daemons', never more than there is (cores, bytes)."""
    age_s = max(0.0, now_unix_s - began_unix_s)
    cpu_s = NODE_CORES * age_s + sum(cpu for cpu, _ in pods) + POD_CORES * age_s * len(pods)
    memory = NODE_BYTES + sum(size for _, size in pods) + POD_BYTES * len(pods)
    cores, most = capacity
    return Usage(min(cpu_s, cores * age_s), min(memory, most), began_unix_s)
