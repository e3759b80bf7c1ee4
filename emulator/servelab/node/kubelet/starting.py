"""Starting one container: back-off, image, configuration, creation, start, hook.

A generator of the worker's: it yields the time until which it waits. After kubelet 1.37's
startContainer and EnsureImageExists.
"""

from collections.abc import Generator
from dataclasses import dataclass, field

from servelab.node.kubelet import (
    backoffs,
    behavior,
    engineset,
    entries,
    faulting,
    hooks,
    imagenames,
    runtime,
    state,
    stopping,
)
from servelab.node.pods import podspec
from servelab.node.rules import actions, wording

Waiting = Generator[float, float, "Failed | None"]
# A registry's answer that it has no such image, and containerd's that it cannot start a process
# (emulated seconds; a real kubelet took 0.1 to 0.2 s).
REFUSAL_S = 0.12
CREATE_S = 0.1


@dataclass(frozen=True, slots=True)
class Failed:
    """A start that failed; ``until_s`` is when the back-off is over, if it was one."""

    why: entries.Failure
    until_s: float | None = None


@dataclass(slots=True)
class Delays:
    """The pod's back-offs."""

    crashes: backoffs.Backoff = field(default_factory=backoffs.Backoff)
    pulls: backoffs.Backoff = field(default_factory=backoffs.Backoff)
    pull_errors: dict[str, str] = field(default_factory=dict)


def start(pod: state.State, delays: Delays, spec: podspec.Container, now_s: float) -> Waiting:
    """Start it; returns why that failed, or None."""
    held = _crash_loop(pod, delays, spec, now_s)
    if held is not None:
        return held
    failure, now_s = yield from _image(pod, delays, spec, now_s)
    if failure is None:
        failure = _not_made(pod, spec)
    if failure is not None:
        pod.emit(spec, "Failed", f"Error: {_told(failure)}", kind="Warning")
        return Failed(failure)
    now_s = yield from wait(now_s, now_s + CREATE_S / pod.scale)
    return (yield from _run(pod, spec, now_s))


def timed(began: Waiting, now_s: float) -> Generator[float, float, tuple[Failed | None, float]]:
    """The result of a start, and when it came."""
    try:
        due_s = next(began)
        while True:
            now_s = yield due_s
            due_s = began.send(now_s)
    except StopIteration as ended:
        return ended.value, now_s


def wait(now_s: float, until_s: float) -> Generator[float, float, float]:
    """Wait until then; returns that time."""
    while now_s < until_s:
        now_s = yield until_s
    return until_s


def _not_made(pod: state.State, spec: podspec.Container) -> entries.Failure | None:
    """Why the container cannot be made as its spec has it; None if it can."""
    said = pod.around.behaviors[spec.name].config_error
    fault = pod.missing.environment.get(spec.name, "") or said or _root_fault(pod, spec)
    if fault:
        return entries.Failure("CreateContainerConfigError", fault)
    profile = _seccomp(pod, spec)
    if profile:
        return entries.Failure("CreateContainerError", wording.no_seccomp_profile(profile))
    return None


def _seccomp(pod: state.State, spec: podspec.Container) -> str:
    """The seccomp profile it wants of the node, which has none; empty if it wants none."""
    both = (pod.pod.raw["spec"].get("securityContext"), spec.raw.get("securityContext"))
    found = {k: v for each in both for k, v in ((each or {}).get("seccompProfile") or {}).items()}
    return str(found.get("localhostProfile") or "") if found.get("type") == "Localhost" else ""


def _root_fault(pod: state.State, spec: podspec.Container) -> str:
    """What a kubelet says of a root user where the spec wants none."""
    both = (pod.pod.raw["spec"].get("securityContext"), spec.raw.get("securityContext"))
    asked = {k: v for each in both for k, v in (each or {}).items() if v is not None}
    image = pod.around.images.get(spec.image, behavior.ImageFact())
    where = f'(pod: "{pod.pod.name}_{pod.pod.namespace}({pod.pod.uid})", container: {spec.name})'
    if not asked.get("runAsNonRoot"):
        return ""
    if asked.get("runAsUser") == 0:
        return f"container's runAsUser breaks non-root policy {where}"
    if image.root and "runAsUser" not in asked:
        return f"container has runAsNonRoot and image will run as root {where}"
    return ""


def _told(failure: entries.Failure) -> str:
    """An image's failure is told by its name, a configuration's by its message."""
    named = failure.reason.startswith(("ErrImage", "ImagePull", "InvalidImage"))
    return failure.reason if named else failure.message


def _crash_loop(
    pod: state.State, delays: Delays, spec: podspec.Container, now_s: float
) -> Failed | None:
    last = pod.snapshot.newest_exited(spec.name)
    if last is None:
        return None
    key, since_s = spec.name, last.ends_s
    if not delays.crashes.holds_since(key, since_s, now_s):
        delays.crashes.failed(key, since_s, now_s)
        return None
    where = (spec.name, pod.pod.namespace, pod.pod.name, pod.pod.uid)
    pod.emit(spec, "BackOff", wording.back_off_event(*where), kind="Warning")
    delay = delays.crashes.delay_real_s(key)
    text = wording.back_off_message(delay, *where)
    return Failed(entries.Failure("CrashLoopBackOff", text), since_s + delay)


def _image(
    pod: state.State, delays: Delays, spec: podspec.Container, now_s: float
) -> Generator[float, float, tuple[entries.Failure | None, float]]:
    store, image = pod.around.host.images, spec.image
    wrong = imagenames.wrong(image)
    if wrong:
        text = wording.bad_image_name(image, wrong)
        pod.emit(spec, "InspectFailed", text, kind="Warning")
        return entries.Failure("InvalidImageName", text), now_s
    present = store.present(image)
    if present and spec.pull_policy != "Always":
        pod.emit(spec, "Pulled", wording.present(image))
        return None, now_s
    if spec.pull_policy == "Never":
        text = wording.never_pulled(image)
        pod.emit(spec, "ErrImageNeverPull", text, kind="Warning")
        return entries.Failure("ErrImageNeverPull", text), now_s
    if delays.pulls.holds_since_update(image, now_s):
        text = wording.back_off_pull(image)
        pod.emit(spec, "BackOff", text)
        message = f"{text}: ErrImagePull: {delays.pull_errors[image]}"
        return entries.Failure("ImagePullBackOff", message), now_s
    pod.emit(spec, "Pulling", wording.pulling(image))
    known = pod.around.images.get(image, behavior.ImageFact())
    error = known.error or faulting.pull_error(pod, spec, now_s)
    if error:
        now_s = yield from wait(now_s, now_s + REFUSAL_S / pod.scale)
        pod.emit(spec, "Failed", wording.pull_failed(image, error), kind="Warning")
        delays.pulls.failed(image, now_s, now_s)
        delays.pull_errors[image] = error
        return entries.Failure("ErrImagePull", error), now_s
    now_s = yield from _pull(pod, spec, now_s)
    return None, now_s


def _pull(
    pod: state.State, spec: podspec.Container, now_s: float
) -> Generator[float, float, float]:
    store, scale = pod.around.host.images, pod.scale
    key, engine = engineset.pull_key(pod.pod, spec), pod.engines.get(spec.name)
    news = not store.present(spec.image)
    since_s = _pulls_since_s(pod, spec, now_s)
    pod.pulls_since_s = None
    store.pull(key, spec.image, pod.around.works[spec.name], since_s * scale)
    if engine is not None:
        engine.pulling = True
    # Its end moves while others compete for the links.
    while now_s < (ends_s := store.state(key).ends_s / scale):
        now_s = yield ends_s
    if engine is not None:
        engine.pulling = False
    now_s, done = ends_s, store.finish(key)
    took, waited = done.ends_s - done.begun_s, done.ends_s - done.asked_s
    pod.emit(spec, "Pulled", wording.pulled(spec.image, took, waited, done.size_bytes))
    if news:
        pod.out.append(actions.ImagesChanged())
    return now_s


def _pulls_since_s(pod: state.State, spec: podspec.Container, now_s: float) -> float:
    """A first pull that goes on may have begun while we were gone, after what ran before."""
    if pod.pulls_since_s is None or pod.cri.next_number(spec.name):
        return now_s
    ran = [each for found in pod.cri.instances.values() for each in found]
    known = [at for each in ran for at in (each.started_s, each.ends_s) if at <= now_s]
    return min(now_s, max([pod.pulls_since_s, *known]))


def _run(pod: state.State, spec: podspec.Container, now_s: float) -> Waiting:
    number = pod.cri.next_number(spec.name)
    said = pod.around.behaviors[spec.name].of_run(number)
    fallback = spec.raw.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    pod.emit(spec, "Created", "Container created")
    if number:
        pod.out.append(actions.NewLog(spec.name))
    engine = pod.engines.get(spec.name)
    made = pod.cri.create(spec.name, number, now_s, said, fallback=fallback, process=engine)
    made.resources, made.image = spec.resources, spec.image
    pod.changed(now_s)
    if said.start_error:
        text = wording.cannot_start(said.start_error)
        made.exit_code, made.reason, made.message = runtime.START_FAILED, "StartError", text
        made.ends_s, made.started_s = now_s, 0.0
        pod.emit(spec, "Failed", f"Error: {text}", kind="Warning")
        return Failed(entries.Failure("RunContainerError", text))
    pod.emit(spec, "Started", "Container started")
    if engine is not None:
        engine.launch(
            pod.out, made, now_s, pod.around.again(pod.pod, spec.name) if number else None
        )
    faulting.started(pod, made, now_s)
    ran = hooks.post_start(pod, spec, made, now_s)
    over_s = now_s + ran.seconds / pod.scale
    while now_s < (until_s := min(over_s, made.ends_s if ran.inside else over_s)):
        now_s = yield until_s
    if now_s < over_s:
        ran = hooks.cut(pod, spec)
    return (yield from _hook_failed(pod, spec, made, ran.fault, now_s)) if ran.fault else None


def _hook_failed(
    pod: state.State, spec: podspec.Container, made: runtime.Instance, why: str, now_s: float
) -> Waiting:
    pod.emit(spec, "FailedPostStartHook", "PostStartHook failed", kind="Warning")
    pod.emit(spec, "Killing", "FailedPostStartHook")
    stopping.stop(pod, spec, made, pod.pod.grace_real_s, now_s)
    yield from stopping.until_ended(pod, spec, made, now_s)
    return Failed(entries.Failure("PostStartHookError", why))
