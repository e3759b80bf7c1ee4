"""What containers answer to probes: whether one can be made, how long it takes, what is wrong.

The command of an exec probe does what it says, as far as it is understood; any other finds what the
container's words, or its engine, say of its health.
"""

import functools

from servelab.node.kubelet import runtime, scripts, state
from servelab.node.pods import podspec
from servelab.node.rules import wording


def took_s(probe: podspec.Probe, instance: runtime.Instance, now_s: float) -> float:
    """Real seconds until there is an answer: of a gRPC probe that nobody hears, and of commands."""
    if probe.target == "grpc":
        deaf = instance.exited(now_s) or not instance.listens(now_s)
        return probe.timeout_s if deaf else 0.0
    script = _script(probe.command)
    if script is None or instance.exited(now_s):
        return 0.0
    return min(script.seconds / instance.scale, probe.timeout_s)


def unmade(instance: runtime.Instance, probe: podspec.Probe, now_s: float) -> str:
    """Why the probe cannot be made, so that it counts for nothing; empty if it can."""
    if probe.target != "exec":
        return ""
    return wording.NO_TASK if instance.exited(now_s) else instance.behavior.probe_error


def failing(
    pod: state.State, instance: runtime.Instance, probe: podspec.Probe, now_s: float
) -> str | None:
    """What the probe says is wrong; None if nothing."""
    at, url = probe.where.at(pod.around.pod_ip), probe.where.url(pod.around.pod_ip)
    if probe.target != "exec" and (instance.exited(now_s) or not instance.listens(now_s)):
        if probe.target == "httpGet":
            return wording.refused(url, at)
        if probe.target == "grpc":
            return wording.no_grpc(at, probe.timeout_s)
        return wording.not_connected(at)
    script = _script(probe.command)
    if script is not None:
        return _said(probe, script, instance.scale)
    if probe.target == "tcpSocket" or instance.healthy(now_s):
        return None
    if instance.process is not None and not instance.process.healthy():
        status = instance.process.unready(probe.where.path)
        if status and probe.target == "httpGet":
            return wording.answered(status) if status >= 400 else None
        return wording.timed_out(url)
    status = instance.behavior.status_while_unhealthy
    said = instance.behavior.probe_prints
    return wording.answered(status) if probe.target == "httpGet" else said


@functools.lru_cache(maxsize=256)
def _script(command: tuple[str, ...]) -> scripts.Script | None:
    return scripts.read(command)


def _said(probe: podspec.Probe, script: scripts.Script, scale: float) -> str | None:
    """What the command of an exec probe comes to."""
    if script.seconds / scale > probe.timeout_s:
        return wording.exec_timed_out(probe.command, probe.timeout_s)
    return "".join(f"{line}\n" for _, line in script.log) if script.exit_code else None
