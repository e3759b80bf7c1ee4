"""The Deployment of a ModelServe. The pod template depends on the spec and on what was resolved."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import ports
from modelserve.api import names
from modelserve.api import spec as specs
from modelserve.render import labels, scheduling
from modelserve.render.resolved import Resolved

# Beyond the drain, for the way from the deletion to SIGTERM and from the exit to the kubelet.
GRACE_MARGIN_REAL_S = 5
PROBE_PERIOD_REAL_S = 1
PROBE_TIMEOUT_REAL_S = 5
LEAST_PROGRESS_REAL_S = 10
SHARED_MEMORY = "shared-memory"


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the main field manager's apply says besides the template.

    ``replicas`` None leaves the field to its owner; ``surge`` is 1 where GPUs are free for one more
    replica, else 0: then one old replica must go before a new one can start, and ``unavailable``
    are how many may be missing meanwhile. ``uid`` is that of the Deployment that is there: one
    deleted meanwhile must not come back by an apply without replicas.
    """

    replicas: int | None
    surge: int
    uid: str = ""
    unavailable: int = 1


def render(
    modelserve: ports.Object,
    spec: specs.ModelServeSpec,
    resolved: Resolved,
    rollout: Rollout,
    time_scale: float,
) -> dict[str, Any]:
    """The Deployment to apply. Equal arguments give equal documents."""
    name = modelserve["metadata"]["name"]
    deadline_real_s = math.ceil(resolved.start_deadline_s / time_scale)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": modelserve["metadata"]["namespace"],
            **({"uid": rollout.uid} if rollout.uid else {}),
            "labels": labels.of_children(name),
            "annotations": {names.RESOLVED: resolved.to_text()},
            "ownerReferences": [labels.owner_reference(modelserve)],
        },
        "spec": {
            **({"replicas": rollout.replicas} if rollout.replicas is not None else {}),
            "selector": {"matchLabels": labels.selector(name)},
            "strategy": _strategy(rollout),
            "progressDeadlineSeconds": max(LEAST_PROGRESS_REAL_S, deadline_real_s),
            "template": _template(name, spec, resolved, time_scale),
        },
    }


def _strategy(rollout: Rollout) -> dict[str, Any]:
    surge = rollout.surge
    rolling = {"maxSurge": surge, "maxUnavailable": 0 if surge else rollout.unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def _template(
    name: str, spec: specs.ModelServeSpec, resolved: Resolved, time_scale: float
) -> dict[str, Any]:
    template = spec.template
    priority = template.priority_class_name
    shared = spec.gpu.tensor_parallel > 1
    pod: dict[str, Any] = {
        "containers": [_container(spec, resolved, time_scale)],
        **scheduling.render(spec, resolved.gpu_product, resolved.gpu_resource),
        "terminationGracePeriodSeconds": math.ceil(spec.drain_seconds / time_scale)
        + GRACE_MARGIN_REAL_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"priorityClassName": priority} if priority else {}),
    }
    if shared:
        pod["volumes"] = [{"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}]
    return {
        "metadata": {
            "labels": {**template.labels, **labels.of_children(name)},
            "annotations": {**template.annotations, **resolved.annotations},
        },
        "spec": pod,
    }


def _container(spec: specs.ModelServeSpec, resolved: Resolved, time_scale: float) -> dict[str, Any]:
    env = {**resolved.env, **{variable.name: variable.value for variable in spec.engine.env}}
    starts = max(1, math.ceil(resolved.start_deadline_s / time_scale / PROBE_PERIOD_REAL_S))
    container: dict[str, Any] = {
        "name": names.ENGINE_CONTAINER,
        "image": resolved.image,
        "ports": [
            {
                "name": names.ENGINE_PORT_NAME,
                "containerPort": names.ENGINE_PORT,
                "protocol": "TCP",
            }
        ],
        "resources": _resources(spec, resolved),
        "startupProbe": _probe(resolved.startup_path, starts),
        "readinessProbe": _probe(resolved.health_path, 3),
        # An engine's last lines tell why it ended; conditions and Events pass them on.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if resolved.command:
        container["command"] = list(resolved.command)
    if resolved.args:
        container["args"] = list(resolved.args)
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in sorted(env.items())]
    if spec.gpu.tensor_parallel > 1:
        # Ranks of one replica talk through shared memory; a container's own 64 MiB do not do.
        container["volumeMounts"] = [{"name": SHARED_MEMORY, "mountPath": "/dev/shm"}]
    return container


def _probe(path: str, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": names.ENGINE_PORT_NAME, "scheme": "HTTP"},
        "periodSeconds": PROBE_PERIOD_REAL_S,
        "timeoutSeconds": PROBE_TIMEOUT_REAL_S,
        "failureThreshold": failures,
    }


def _resources(spec: specs.ModelServeSpec, resolved: Resolved) -> dict[str, Any]:
    gpus: Mapping[str, str] = {resolved.gpu_resource: str(spec.gpu.tensor_parallel)}
    asked = spec.template.resources
    return {"limits": {**asked.limits, **gpus}, "requests": {**asked.requests, **gpus}}
