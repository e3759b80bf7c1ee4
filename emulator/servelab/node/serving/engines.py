"""The engine in a pod as its node sees it: what it was started as, and how far its start is."""

import contextlib
import json
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import names, wire
from modelserve.catalog import gpus
from modelserve.engines import launch as launches
from modelserve.engines import types
from servelab.node.gpus import slices
from servelab.node.pods import podspec

# What a vLLM calls its processes; others' are what their command line says.
_VLLM_CORE, _VLLM_RANK = "VLLM::EngineCore", "VLLM::Worker_TP{}"
# What images begin with that are given arguments alone.
_ENTRYPOINTS = {
    "vllm-openai": ("/usr/bin/python3", "/usr/local/bin/vllm", "serve"),
    "vllm-openai-rocm": ("/usr/bin/python3", "/usr/local/bin/vllm", "serve"),
    "text-generation-inference": ("/usr/local/bin/text-generation-router",),
}
# Numbers of processes that a start of Python leaves.
CORE_PID = 61
FIRST_RANK_PID = 133


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine of one container."""

    container: podspec.Container
    launch: types.Launch
    gpu: gpus.Gpu
    key: str  # under which the workers know it

    @property
    def ranks(self) -> int:
        return self.launch.tensor_parallel

    def processes(self) -> tuple[tuple[int, str], ...]:
        """Those beside the first, by number."""
        if self.launch.engine is not types.EngineType.VLLM:
            return ()
        ranks = range(self.ranks) if self.ranks > 1 else ()
        workers = ((FIRST_RANK_PID + rank, _VLLM_RANK.format(rank)) for rank in ranks)
        return ((CORE_PID, _VLLM_CORE), *workers)

    def on_gpu(self, rank: int, command: str) -> tuple[int, str]:
        """Number and name of the process that holds the GPU of a rank."""
        others = self.processes()
        if not others:
            return 1, command
        return others[1 + rank] if len(others) > 1 else others[0]


def of(pod: podspec.Pod, whole: gpus.Gpu | None, mig_profile: str = "") -> tuple[Engine, ...]:
    """The engines of a pod that can start there, as a rule one or none.

    On a node with such GPUs, which may be cut into slices of that profile.
    """
    found: list[Engine] = []
    if whole is None:
        return ()
    for container in pod.containers:
        if container.init:
            continue
        gpu = slices.found_by(container.raw, whole, mig_profile)
        with contextlib.suppress(errors.ModelServeError):
            launch = launches.parse(container.raw, pod.annotations, gpu)
            if launch is not None:
                key = f"{pod.uid}/{container.name}" if found else pod.uid
                found.append(Engine(container, launch, gpu, key))
    return tuple(found)


def command_line(container: podspec.Container) -> str:
    """What the first process of a container is called as."""
    command = [str(word) for word in container.raw.get("command") or ()]
    name = container.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    words = [*(command or _ENTRYPOINTS.get(name, ())), *(container.raw.get("args") or ())]
    return " ".join(str(word) for word in words) or name


def stamps(pod: podspec.Pod) -> wire.PhaseStamps:
    """How far its start is, as the pod's annotation tells; nothing if that cannot be read."""
    try:
        return wire.PhaseStamps.parse(json.loads(pod.annotations.get(names.PHASES, "{}")))
    except (ValueError, KeyError, TypeError):
        return wire.PhaseStamps(1.0)


def starting_s(found: wire.PhaseStamps, started_unix_s: float, now_unix_s: float) -> float:
    """Real seconds that its start took so far, from the container's start on."""
    ready = (s.start_ms for s in found.stamps if s.phase in (wire.Phase.PROBE, wire.Phase.STARTED))
    end_s = min((start_ms / 1000 for start_ms in ready), default=now_unix_s)
    return max(0.0, end_s - started_unix_s)
