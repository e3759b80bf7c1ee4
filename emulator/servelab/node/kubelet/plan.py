"""What a sync is to do: which containers to kill and start, in which order.

After kubelet 1.37's computePodActions (pkg/kubelet/kuberuntime).
"""

from dataclasses import dataclass, field

from servelab.node.kubelet import entries, probeworkers, resizing, restartall, runtime, state
from servelab.node.pods import podspec
from servelab.node.rules import wording

Kind = podspec.ProbeKind


@dataclass(frozen=True, slots=True)
class Kill:
    """A running container to be killed, and what the event says."""

    spec: podspec.Container
    message: str
    grace_real_s: float


@dataclass(slots=True)
class Actions:
    """In order: ``kill_pod`` or ``taken`` alone, or kills, then starts (init containers first)."""

    kill_pod: bool = False
    taken: list[podspec.Container] = field(default_factory=list)  # from the runtime
    kills: list[Kill] = field(default_factory=list)
    inits: list[podspec.Container] = field(default_factory=list)
    starts: list[podspec.Container] = field(default_factory=list)
    added: list[podspec.Container] = field(default_factory=list)  # ephemeral ones, before them


def compute(pod: state.State, probed: probeworkers.Workers) -> Actions:
    """From what the last relist saw."""
    found = Actions()
    if pod.restarting:
        found.taken = restartall.order(pod.pod, pod.snapshot)
        return found
    inits = [spec for spec in pod.pod.containers if spec.init]
    mains = [spec for spec in pod.pod.containers if spec.main]
    if pod.snapshot.sandbox == "absent":
        # A new sandbox begins with the first init container, or with all others.
        found.inits, found.starts = inits[:1], [] if inits else mains
        return found
    found.added = [
        spec
        for spec in pod.pod.containers
        if spec.ephemeral and pod.snapshot.newest(spec.name) is None
    ]
    if not _init(pod, probed, inits, mains, found) or found.kill_pod:
        return found
    kept = False
    for spec in mains:
        seen = pod.snapshot.newest(spec.name)
        if seen is None or not seen.running:
            if entries.restarts(pod.pod, spec, seen):
                found.starts.append(spec)
            continue
        if seen.instance.image != spec.image:
            _again(pod, spec, wording.changed_kill(spec.name), found)
        elif _probe_kill(pod, probed, spec, seen.instance, found):
            continue
        elif resizing.needs_restart(spec, seen.instance):
            _again(pod, spec, wording.resize_kill(spec.name), found)
        else:
            kept = True
    if not kept and not found.starts:
        # No container is left but sidecars, which keep no pod alive.
        found.kill_pod, found.inits = True, []
    return found


def _init(
    pod: state.State,
    probed: probeworkers.Workers,
    inits: list[podspec.Container],
    mains: list[podspec.Container],
    found: Actions,
) -> bool:
    """Plan the init containers, the last first; True when done.

    Once one has run, those before it are done, and of them only sidecars matter.
    """
    before = initialized = pod.snapshot.started(tuple(spec.name for spec in mains))
    for number in range(len(inits) - 1, -1, -1):
        spec, following = inits[number], inits[number + 1 : number + 2]
        seen = pod.snapshot.newest(spec.name)
        if seen is None:
            if before and spec.sidecar:
                found.inits.insert(0, spec)
            continue
        if before and not spec.sidecar:
            continue
        done = _one_init(pod, probed, spec, seen, found)
        if found.kill_pod:
            return False
        if done and not following:
            initialized = True
        elif done and not before:
            found.inits += following
        before = True
    if not inits:
        return True
    if not before:
        found.inits = inits[:1]
    return initialized


def _one_init(
    pod: state.State,
    probed: probeworkers.Workers,
    spec: podspec.Container,
    seen: runtime.Seen,
    found: Actions,
) -> bool:
    """Whether it lets the next one start."""
    if seen.running:
        if not spec.sidecar:
            return False
        identity = seen.instance.container_id
        passed = probed.passed_startup(spec, identity)
        if passed is True:
            if seen.instance.image != spec.image:
                text = wording.init_changed_kill(spec.name)
                _kill_sidecar(spec, text, pod.pod.grace_real_s, found)
            elif probed.failed(spec.name, identity, Kind.LIVENESS):
                _probe_kill_sidecar(pod, spec, Kind.LIVENESS, found)
            return True
        if probed.failed(spec.name, identity, Kind.STARTUP):
            _probe_kill_sidecar(pod, spec, Kind.STARTUP, found)
        return False
    if spec.sidecar:
        found.inits.insert(0, spec)
        return False
    if seen.instance.exit_code == 0:
        return True
    if not entries.restarts(pod.pod, spec, seen):
        found.kill_pod, found.inits = True, []
        return False
    found.inits.append(spec)
    return False


def _again(pod: state.State, spec: podspec.Container, text: str, found: Actions) -> None:
    """Plan the end and new start of one that is to run otherwise."""
    found.kills.append(Kill(spec, text, pod.pod.grace_real_s))
    found.starts.append(spec)


def _probe_kill_sidecar(
    pod: state.State, spec: podspec.Container, kind: Kind, found: Actions
) -> None:
    text = wording.init_failed_probe_kill(spec.name, kind.lower())
    _kill_sidecar(spec, text, _grace_real_s(pod, spec, kind), found)


def _kill_sidecar(spec: podspec.Container, text: str, grace_real_s: float, found: Actions) -> None:
    found.kills.append(Kill(spec, text, grace_real_s))
    found.inits.insert(0, spec)


def _probe_kill(
    pod: state.State,
    probed: probeworkers.Workers,
    spec: podspec.Container,
    instance: runtime.Instance,
    found: Actions,
) -> bool:
    """Plan the death, and new life, of one that failed a probe; returns whether it did."""
    kinds = (Kind.LIVENESS, Kind.STARTUP)
    kind = next((k for k in kinds if probed.failed(spec.name, instance.container_id, k)), None)
    if kind is None:
        return False
    again = (spec.raw.get("restartPolicy") or pod.pod.restart_policy) != "Never"
    say = wording.failed_probe_kill if again else wording.failed_probe_end
    text = say(spec.name, kind.lower())
    found.kills.append(Kill(spec, text, _grace_real_s(pod, spec, kind)))
    if again:
        found.starts.append(spec)
    return True


def _grace_real_s(pod: state.State, spec: podspec.Container, kind: Kind) -> float:
    probe = spec.probe(kind)
    if probe is None or probe.grace_real_s is None or pod.pod.deleted:
        return pod.pod.grace_real_s
    return probe.grace_real_s
