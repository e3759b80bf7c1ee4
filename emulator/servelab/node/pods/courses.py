"""What the starts of an engine on nodes alike have in common: worked out once for all its pods."""

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import wire
from modelserve.api.spec import EngineType
from modelserve.catalog import gpus
from modelserve.decide import coldstart, moving, nodefacts
from modelserve.engines import kv
from modelserve.engines import launch as launches
from servelab.engine import assembly
from servelab.engine.surfaces import lastwords, logs
from servelab.node.pods import starting

# Launches that are kept in mind: those of a cluster's Deployments, on the kinds of nodes it has.
KEPT = 256


@dataclass(frozen=True, slots=True)
class Course:
    """A start but for its pull and its jitter: planned emulated seconds, and log lines by phase.

    ``refusal``: what the engine says that finds it cannot serve; else "". It ends so once its
    weights are loaded, or, if ``unloaded``, before it has read any: there is no memory for them.
    """

    load_s: float
    warm_up_s: float
    lines: Mapping[wire.Phase, tuple[starting.Line, ...]]
    refusal: str
    unloaded: bool = False


@functools.lru_cache(maxsize=KEPT)
def of(launch: launches.Launch, gpu: gpus.Gpu, rates: nodefacts.NodeRates, *, warm: bool) -> Course:
    """The course on a node of these rates; ``warm``: its page cache has all of the weights."""
    cache = nodefacts.CacheState(page_cached=warm)
    planned = coldstart.plan(launch, gpu, rates, cache)
    unloaded = not kv.holds_weights(launch, gpu)
    refusal = _no_room(launch, gpu) if unloaded else _misfit(launch, gpu)
    if unloaded:
        # Room is made for all weights before the first is read (vLLM, ``base_loader.py``).
        read = dataclasses.replace(planned.weights, n_bytes=0)
        planned = dataclasses.replace(planned, weights=read)
    said = logs.of(launch.engine, launch.options).start_lines(launch, planned, gpu)
    lines = {
        phase: tuple(
            starting.Line(line.share, line.text, line.listens)
            for line in said
            if line.phase is phase and not (unloaded and line.share)
        )
        for phase in starting.TIMED
    }
    if refusal:
        # None of the lines that tell of a readiness which never comes.
        lines[wire.Phase.WARM_UP] = ()
    return Course(planned.weights.duration_s, planned.warm_up_s, lines, refusal, unloaded)


@functools.lru_cache(maxsize=KEPT)
def reads(
    launch: launches.Launch, gpu: gpus.Gpu, rates: nodefacts.NodeRates
) -> tuple[moving.Transfer, moving.Transfer]:
    """The reads of its weights: from storage, and from the node's page cache."""
    cold, warm = (coldstart.weights(launch, gpu, rates, warm=each) for each in (False, True))
    return cold, warm


def _no_room(launch: launches.Launch, gpu: gpus.Gpu) -> str:
    root = lastwords.out_of_memory(gpu.driver_memory_mib / 1024)
    return "\n".join(lastwords.not_started(launch.engine, root))


def _misfit(launch: launches.Launch, gpu: gpus.Gpu) -> str:
    try:
        assembly.from_launch(launch, gpu, seed=0)
    except assembly.KVShortage as error:
        if launch.engine is not EngineType.VLLM:
            return f"ERROR {error}"
        root = lastwords.kv_shortage(launch, gpu)
        return "\n".join(lastwords.not_started(launch.engine, root))
    except errors.InputError as error:
        return f"ERROR {error}"
    return ""
