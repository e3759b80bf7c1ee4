"""What the starts of an engine on nodes alike have in common: worked out once for all its pods."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart, moving, nodefacts
from modelserve.engines import launch as launches
from servelab.engine import assembly
from servelab.engine.surfaces import logs
from servelab.node.pods import starting

# Launches that are kept in mind: those of a cluster's Deployments, on the kinds of nodes it has.
KEPT = 256


@dataclass(frozen=True, slots=True)
class Course:
    """A start but for its pull and its jitter: planned emulated seconds, and log lines by phase.

    ``refusal``: why the engine finds, once its weights are loaded, that it cannot serve; else "".
    """

    load_s: float
    warm_up_s: float
    lines: Mapping[wire.Phase, tuple[starting.Line, ...]]
    refusal: str


@functools.lru_cache(maxsize=KEPT)
def of(launch: launches.Launch, gpu: gpus.Gpu, rates: nodefacts.NodeRates, *, warm: bool) -> Course:
    """The course on a node of these rates; ``warm``: its page cache has all of the weights."""
    cache = nodefacts.CacheState(page_cached=warm)
    planned = coldstart.plan(launch, gpu, rates, cache)
    refusal = _misfit(launch, gpu)
    said = logs.of(launch.engine, launch.options).start_lines(launch, planned, gpu)
    lines = {
        phase: tuple(
            starting.Line(line.share, line.text, line.listens)
            for line in said
            if line.phase is phase
        )
        for phase in starting.TIMED
    }
    if refusal:
        # None of the lines that tell of a readiness which never comes.
        lines[wire.Phase.WARM_UP] = ()
    return Course(planned.weights.duration_s, planned.warm_up_s, lines, refusal)


@functools.lru_cache(maxsize=KEPT)
def reads(
    launch: launches.Launch, gpu: gpus.Gpu, rates: nodefacts.NodeRates
) -> tuple[moving.Transfer, moving.Transfer]:
    """The reads of its weights: from storage, and from the node's page cache."""
    cold, warm = (coldstart.weights(launch, gpu, rates, warm=each) for each in (False, True))
    return cold, warm


def _misfit(launch: launches.Launch, gpu: gpus.Gpu) -> str:
    try:
        assembly.from_launch(launch, gpu, seed=0)
    except errors.InputError as error:
        return f"ERROR {error}"
    return ""
