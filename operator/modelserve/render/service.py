"""The headless Service of a ModelServe: names the pods; clients use the gateway."""

from typing import Any

from modelserve import ports
from modelserve.api import names
from modelserve.render import labels


def render(modelserve: ports.Object) -> dict[str, Any]:
    """The Service to apply."""
    name = modelserve["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": modelserve["metadata"]["namespace"],
            "labels": labels.of_children(name),
            "ownerReferences": [labels.owner_reference(modelserve)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": labels.selector(name),
            "ports": [
                {
                    "name": names.ENGINE_PORT_NAME,
                    "port": names.ENGINE_PORT,
                    "targetPort": names.ENGINE_PORT_NAME,
                    "protocol": "TCP",
                }
            ],
        },
    }
