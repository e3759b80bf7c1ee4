"""Lifecycle hooks: how long one takes, and what a kubelet says of one that fails.

After kubelet 1.37's pkg/kubelet/lifecycle. No command is run: what ``sleep``, ``exit``, ``false``
in it say is believed, and the words of a container's behaviour come before that.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from servelab.node.kubelet import runtime, state
from servelab.node.pods import podspec
from servelab.node.rules import wording

_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?)")
_EXIT = re.compile(r"\bexit\s+(\d+)")


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a hook: emulated seconds it took, and why it failed, if it did.

    One that runs ``inside`` its container fails if that ends first.
    """

    seconds: float
    fault: str = ""
    inside: bool = True


def post_start(
    pod: state.State, spec: podspec.Container, made: runtime.Instance, now_s: float
) -> Ran:
    """The hook of a container that has just started."""
    hook = (spec.raw.get("lifecycle") or {}).get("postStart")
    said = made.behavior
    return _run(pod, spec, made, hook, now_s, fails=said.post_start_fails)


def cut(pod: state.State, spec: podspec.Container) -> Ran:
    """The hook of a container that has just started, and ended under it."""
    command = spec.raw["lifecycle"]["postStart"]["exec"]["command"]
    return Ran(0.0, wording.exec_hook_failed(command, _where(pod, spec), runtime.KILLED))


def pre_stop(
    pod: state.State, spec: podspec.Container, instance: runtime.Instance, now_s: float
) -> Ran | None:
    """The hook of one that is about to be stopped; None without one."""
    hook = (spec.raw.get("lifecycle") or {}).get("preStop")
    if not hook:
        return None
    ran = _run(pod, spec, instance, hook, now_s)
    said_s = instance.behavior.pre_stop_seconds
    return Ran(said_s, ran.fault, ran.inside) if said_s else ran


def _run(
    pod: state.State,
    spec: podspec.Container,
    instance: runtime.Instance,
    hook: Mapping[str, Any] | None,
    now_s: float,
    *,
    fails: bool = False,
) -> Ran:
    hook = hook or {}
    if hook.get("sleep"):
        return Ran(float(hook["sleep"].get("seconds", 0)), inside=False)
    where = _where(pod, spec)
    if hook.get("httpGet") and not fails:
        if instance.listens(now_s):
            return Ran(0.0)
        target = podspec.http_target(hook["httpGet"], spec.raw)
        path, url = str(hook["httpGet"].get("path", "")), target.url(pod.around.pod_ip)
        return Ran(0.0, wording.http_hook_failed(path, where, url, target.at(pod.around.pod_ip)))
    command = [str(word) for word in (hook.get("exec") or {}).get("command") or ()]
    text = " ".join(command)
    took_s = sum(map(float, _SLEEP.findall(text)))
    code = _code(command) or int(fails)
    return Ran(took_s, wording.exec_hook_failed(command, where, code) if code else "")


def _where(pod: state.State, spec: podspec.Container) -> wording.Where:
    return wording.Where(spec.name, f"{pod.pod.name}_{pod.pod.namespace}({pod.pod.uid})")


def _code(command: list[str]) -> int:
    """What it ends with, as far as it says so itself."""
    if command and PurePosixPath(command[0]).name == "false":
        return 1
    said = _EXIT.search(" ".join(command))
    return int(said[1]) if said else 0
