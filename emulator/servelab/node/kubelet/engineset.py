"""The engines of a pod together: made, named, and told of in one condition."""

from collections.abc import Iterable, Mapping

from modelserve.api import names
from servelab.node.kubelet import enginelife, moving
from servelab.node.pods import podspec, starting
from servelab.node.rules.context import Host


def of_pod(
    pod: podspec.Pod, host: Host, starts: Mapping[str, starting.EngineStart]
) -> dict[str, enginelife.Engine]:
    """The engines of a pod by container, the one that leads first."""
    found = [spec for spec in pod.containers if spec.name in starts]
    return {
        spec.name: enginelife.Engine(
            spec.name,
            moving.Moves(host, pull_key(pod, spec), _load_key(pod, spec, leads=number == 0)),
            starting.ColdStart(starts[spec.name], host.scale),
            leads=number == 0,
        )
        for number, spec in enumerate(found)
    }


def pull_key(pod: podspec.Pod, spec: podspec.Container) -> str:
    """Names the container's pull in the node's image store."""
    return f"{pod.uid}/{spec.name}"


def _load_key(pod: podspec.Pod, spec: podspec.Container, *, leads: bool) -> str:
    return f"{pod.node}/load/{pod.uid}" + ("" if leads else f"/{spec.name}")


def dial_annotation(engine: enginelife.Engine) -> str:
    """Under which name the pod tells where that engine listens."""
    return names.DIAL if engine.leads else f"{names.DIAL}.{engine.container}"


def starting_condition(
    engines: Iterable[enginelife.Engine], now_s: float
) -> tuple[str, str, str] | None:
    """Of the first engine that has not started yet, else of the first."""
    found = [engine.condition(now_s) for engine in engines]
    return next((each for each in found if each[0] == "True"), found[0] if found else None)
