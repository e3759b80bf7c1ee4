"""What a request to a kubelet asks to do, as its authorizer sees it (kubelet/server/auth.go, 1.37).

Anything is ``nodes/proxy``; some paths have subresources of their own, tried first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# With fine-grained authorization (stable since 1.36) these, and then nodes/proxy.
_FINE = {
    "/allocatedPods": "pods",
    "/pods": "pods",
    "/healthz": "healthz",
    "/configz": "configz",
    "/runningpods": "pods",
}
_OWN = {
    "/stats": "stats",
    "/metrics": "metrics",
    "/logs": "log",
    "/checkpoint": "checkpoint",
    "/statusz": "statusz",
    "/flagz": "configz",
}
# A kubelet takes the GET that opens a WebSocket for reading; who may only read gets no shell here.
ACTING = ("/exec", "/attach", "/run", "/portForward")


@dataclass(frozen=True, slots=True)
class Attributes:
    """A verb on a node; allowed if it is on any of the subresources."""

    verb: str
    node: str
    subresources: Sequence[str]


def of(method: str, path: str, node: str) -> Attributes:
    """Of a request for a path of a node's kubelet."""
    fine = [name for prefix, name in _FINE.items() if _below(path, prefix)]
    own = next((name for prefix, name in _OWN.items() if _below(path, prefix)), "proxy")
    acts = any(_below(path, prefix) for prefix in ACTING)
    verb = "create" if acts else VERBS.get(method, "")
    return Attributes(verb, node, (*fine, own))


def _below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")
