"""Faults of a pod while it lives: what they do to pulls, containers and engines."""

from collections.abc import Sequence
from dataclasses import dataclass

from modelserve.api import wire
from modelserve.api.faults import FaultType as Type
from servelab.node.faults import words
from servelab.node.kubelet import enginelife, runtime, state
from servelab.node.pods import podspec
from servelab.node.rules import actions

# A container in a crash loop lives so long, and an engine without a GPU as long as its imports
# take, in emulated seconds. Our choice.
CRASH_AFTER_S = 2.0
NO_GPU_AFTER_S = 9.0
_SLOW = {Type.SLOW_REGISTRY: actions.Path.REGISTRY, Type.SLOW_STORAGE: actions.Path.STORAGE}


@dataclass(frozen=True, slots=True)
class Death:
    """How an engine ends that a fault befalls."""

    exit_code: int
    lines: Sequence[str]


def due_s(pod: state.State) -> float:
    """When the next fault begins or ends; those of the past count once the pod has begun."""
    return pod.faults.next_change_s(pod.faults_seen_s)


def turn(pod: state.State, now_s: float) -> None:
    """Faults have begun or ended since this was last called."""
    since_s, pod.faults_seen_s = pod.faults_seen_s, now_s
    for kind, path in _SLOW.items():
        found = pod.faults.holding(kind, now_s)
        factor = 1.0 if found is None else found.factor
        if pod.slowed.get(path, 1.0) != factor:
            pod.slowed[path] = factor
            pod.out.append(actions.Slow(path, factor))
    for engine in pod.engines.values():
        _disturb(pod, engine, now_s)
    if pod.faults.begun(Type.XID, since_s, now_s) is not None:
        for engine in pod.engines.values():
            if pod.faults.holding(Type.XID, now_s, engine.container):
                engine.die(pod.out, now_s, 1, words.cuda_error(engine.cold.start.engine))
    if pod.faults.begun(Type.CRASH_LOOP, since_s, now_s) is not None:
        for instance in pod.cri.running(now_s):
            found = pod.faults.holding(Type.CRASH_LOOP, now_s, instance.name)
            if found is not None:
                instance.end(now_s, found.exit_code)
                pod.changed(now_s)


def _disturb(pod: state.State, engine: enginelife.Engine, now_s: float) -> None:
    hung = pod.faults.holding(Type.HUNG_ENGINE, now_s, engine.container)
    slow = pod.faults.holding(Type.SLOW_ENGINE, now_s, engine.container)
    engine.disturb(
        pod.out,
        stuck=hung is not None,
        cut_off=pod.faults.holding(Type.NODE_LOST, now_s) is not None,
        factor=1.0 if slow is None else slow.factor,
    )


def pull_error(pod: state.State, spec: podspec.Container, now_s: float) -> str:
    """The registry's words if it fails now; empty if it does not."""
    found = pod.faults.holding(Type.IMAGE_PULL_ERROR, now_s, spec.name, spec.image)
    if found is None:
        return ""
    return found.said.message or words.registry_error(spec.image)


def started(pod: state.State, instance: runtime.Instance, now_s: float) -> None:
    """A container has started: it may be doomed."""
    loop = pod.faults.holding(Type.CRASH_LOOP, now_s, instance.name)
    if loop is not None:
        instance.end(now_s + CRASH_AFTER_S / pod.scale, loop.exit_code)
    engine = pod.engines.get(instance.name)
    broken = pod.faults.holding(Type.XID, now_s, instance.name)
    if engine is not None and broken is not None and words.breaks_gpu(broken.xid):
        said = words.no_gpu(engine.cold.start.engine)
        engine.doom = enginelife.Doom(now_s + NO_GPU_AFTER_S / pod.scale, 1, said)


def loaded(pod: state.State, engine: enginelife.Engine, now_s: float) -> None:
    """An engine may have read its weights: it finds that they are corrupt, or that room lacks."""
    if engine.cold.phase is not wire.Phase.WEIGHT_LOAD or not engine.step_is_over(now_s):
        return
    if pod.faults.holding(Type.CORRUPT_WEIGHTS, now_s, engine.container):
        engine.die(pod.out, now_s, 1, words.corrupt_weights(engine.cold.start.engine))
    elif pod.faults.holding(Type.OUT_OF_GPU_MEMORY, now_s, engine.container):
        said = words.out_of_gpu_memory(engine.cold.start.engine, pod.around.gpu_memory_gib)
        engine.die(pod.out, now_s, 1, said)
