"""Which nodes a pod may go to: the GPU it needs, and what the spec's template asks for besides."""

from typing import Any

from modelserve.api import names
from modelserve.api import spec as specs


def render(spec: specs.ModelServeSpec, gpu_product: str, gpu_resource: str) -> dict[str, Any]:
    """``nodeSelector`` and ``tolerations`` of the pod's spec; the GPUs' own taint is tolerated."""
    template = spec.template
    taint = {"key": gpu_resource, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    given = [
        toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
        for toleration in template.tolerations
    ]
    return {
        "nodeSelector": {**template.node_selector, names.LABEL_GPU_PRODUCT: gpu_product},
        "tolerations": [taint, *given],
    }
