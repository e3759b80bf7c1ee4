"""Stopping containers: hooks, grace, and sidecars after the others.

After kubelet 1.37's killContainer and its termination ordering.
"""

from collections.abc import Generator, Sequence

from servelab.node.kubelet import hooks, runtime, starting, state
from servelab.node.pods import podspec
from servelab.node.rules import wording

# A kubelet gives no container less, and no pod that ends: one deleted by force has it for hooks.
LEAST_GRACE_REAL_S, LAST_GRACE_REAL_S = 2.0, 1.0


def least(grace_real_s: float) -> float:
    """The grace, but no less than a kubelet gives."""
    return max(LEAST_GRACE_REAL_S, grace_real_s)


def last_grace_real_s(pod: podspec.Pod) -> float:
    """The grace of a pod that ends for good."""
    return max(LAST_GRACE_REAL_S, pod.grace_real_s)


def stop(
    pod: state.State,
    spec: podspec.Container,
    instance: runtime.Instance,
    grace_real_s: float,
    now_s: float,
    turn_s: float = float("-inf"),
    *,
    tell: bool = True,
) -> None:
    """Lay out its end; ``turn_s`` is when those have ended that go before it.

    ``tell`` of a hook that fails, unless that was told when the end was laid out before.
    """
    at_s, left = now_s, grace_real_s
    hook = hooks.pre_stop(pod, spec, instance, now_s) if left > 0 else None
    if hook is not None:
        took = min(left, hook.seconds / pod.scale)
        instance.hook_s = now_s + hook.seconds / pod.scale if hook.inside else now_s
        instance.kept_s = now_s if hook.inside else now_s + took
        at_s, left = at_s + took, left - int(took)
    if hook is not None and hook.fault and tell:
        pod.emit(spec, "FailedPreStopHook", "PreStopHook failed", kind="Warning")
    if turn_s > at_s and left > 0:
        took = min(left, turn_s - at_s)
        at_s, left = at_s + took, left - int(took)
    instance.stop(at_s, least(left))


def until_ended(
    pod: state.State, spec: podspec.Container, instance: runtime.Instance, now_s: float
) -> Generator[float, float, float]:
    """Wait until its kill is over, which may be sooner than was laid out; returns that time."""
    while now_s < (until_s := _over_s(instance)):
        now_s = yield until_s
    _tell_cut(pod, spec, instance)
    return until_s


def _over_s(instance: runtime.Instance) -> float:
    """When its kill is over: a kubelet waits for its own sleep, even if the container has ended."""
    return max(instance.ends_s, instance.kept_s)


def take(
    pod: state.State, specs: Sequence[podspec.Container], now_s: float
) -> Generator[float, float, float]:
    """One by one, stop what runs, without its hook, and take it from the runtime; returns when."""
    for spec in specs:
        seen = pod.snapshot.newest(spec.name)
        if seen is not None and seen.running:
            pod.emit(spec, "Killing", "killing")
            stop(pod, spec, seen.instance, 0.0, now_s)
            now_s = yield from until_ended(pod, spec, seen.instance, now_s)
        pod.cri.remove(spec.name)
        pod.changed(now_s)
    return now_s


def until_all_ended(pod: state.State, now_s: float) -> Generator[float, float, float]:
    """The same of all that run; returns when the last has."""
    stopped = pod.cri.running(now_s)
    while now_s < (until_s := max(map(_over_s, stopped), default=now_s)):
        now_s = yield until_s
    specs = {spec.name: spec for spec in pod.pod.containers}
    for instance in stopped:
        _tell_cut(pod, specs[instance.name], instance)
    return now_s


def _tell_cut(pod: state.State, spec: podspec.Container, instance: runtime.Instance) -> None:
    """A hook that runs inside a container fails when that ends under it."""
    if instance.hook_s > instance.ends_s:
        pod.emit(spec, "FailedPreStopHook", "PreStopHook failed", kind="Warning")


def stop_all(pod: state.State, grace_real_s: float, now_s: float) -> None:
    """Tell and stop all that run: sidecars, last to first, when all others have ended."""
    running = {instance.name: instance for instance in pod.cri.running(now_s)}
    specs = [spec for spec in pod.pod.containers if spec.name in running]
    for spec in specs:
        pod.emit(spec, "Killing", wording.stopping(spec.name))
    pod.stopping = (grace_real_s, now_s)
    turn_s = float("-inf")
    for spec in _order(specs):
        own_turn_s = turn_s if spec.sidecar else float("-inf")
        stop(pod, spec, running[spec.name], grace_real_s, now_s, own_turn_s)
        turn_s = max(turn_s, _over_s(running[spec.name]))


def hasten(pod: state.State) -> None:
    """One has ended sooner than was laid out: sidecars that waited for it have their turn now."""
    if pod.stopping is None:
        return
    grace_real_s, began_s = pod.stopping
    running = {instance.name: instance for instance in pod.cri.running(began_s)}
    turn_s = float("-inf")
    for spec in _order([spec for spec in pod.pod.containers if spec.name in running]):
        instance = running[spec.name]
        if spec.sidecar and instance.process is None:
            instance.ends_s = runtime.NEVER
            runtime.plan(instance)
            stop(pod, spec, instance, grace_real_s, began_s, turn_s, tell=False)
        turn_s = max(turn_s, _over_s(instance))


def _order(specs: Sequence[podspec.Container]) -> list[podspec.Container]:
    sidecars = [spec for spec in specs if spec.sidecar]
    return [*(spec for spec in specs if not spec.sidecar), *reversed(sidecars)]


def kill_pod(pod: state.State, now_s: float, grace_real_s: float) -> Generator[float, float, float]:
    """Stop all that runs, and take the sandbox down; returns when that is done."""
    stop_all(pod, grace_real_s, now_s)
    now_s = yield from until_all_ended(pod, now_s)
    if pod.cri.sandbox == "ready":
        now_s = yield from starting.wait(now_s, now_s + runtime.SANDBOX_S / pod.scale)
        pod.cri.sandbox = "gone"
        pod.changed(now_s)
    return now_s
