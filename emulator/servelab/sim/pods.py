"""A model's pods as the API server would show them, from the template that the operator applies."""

import dataclasses
from typing import Any

from modelserve import ports
from modelserve.api import names, timestamps
from modelserve.api.spec import ModelServeSpec
from modelserve.catalog import images
from modelserve.decide import prediction
from modelserve.render import deployment, resolved
from servelab.node.pods import podspec
from servelab.node.rules import admission
from servelab.sim import gateways
from servelab.sim.suiting import Wish

_UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Template:
    """Of all pods of one model."""

    def __init__(self, name: str, spec: ModelServeSpec, assessment: prediction.Assessment) -> None:
        meta = {"name": name, "namespace": gateways.NAMESPACE, "uid": name}
        owner = {"apiVersion": "modelserve.dev/v1alpha1", "kind": "ModelServe", "metadata": meta}
        found = resolved.resolve(name, spec, assessment)
        applied = deployment.render(owner, spec, found, deployment.Rollout(None, 0), 1.0)
        self._template: ports.Object = applied["spec"]["template"]
        self.image = images.canonical(found.image)
        self.annotated = names.FAULTS in self._template["metadata"]["annotations"]
        self.wish = Wish.of(self._template, spec.gpu.tensor_parallel)
        self.memory_bytes = int(admission.requests(self._template).get("memory", 0))

    def raw(
        self, uid: str, node: str, created_s: float = 0.0, *, refused: bool = False
    ) -> ports.Object:
        """The object; ``refused``: the scheduler found no node for it."""
        meta: dict[str, Any] = {
            **self._template["metadata"],
            "name": uid,
            "namespace": gateways.NAMESPACE,
            "uid": uid,
            "creationTimestamp": timestamps.format_time(created_s),
        }
        spec = {**self._template["spec"], **({"nodeName": node} if node else {})}
        rows = [_UNSCHEDULABLE] if refused else []
        return {"metadata": meta, "spec": spec, "status": {"conditions": rows}}

    def bound(self, uid: str, node: str, seed: int) -> podspec.Pod:
        """As a kubelet reads it; its UID is another with each seed, and so is its luck."""
        return dataclasses.replace(podspec.parse(self.raw(uid, node)), uid=f"{seed}/{uid}")
