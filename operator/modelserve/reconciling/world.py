"""What the operator knows of the cluster: plain objects by key, never older than its own writes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NewType

from modelserve import errors, ports
from modelserve.api import conditions, keys, names, pods
from modelserve.api.keys import Key
from modelserve.decide import placement

Uid = NewType("Uid", str)
# Kinds of pods whose nodes are remembered.
MOST_ASKED = 1000


@dataclass(frozen=True, slots=True)
class GpuClaim:
    """The GPUs a pod asks for, as the scheduler counts them; ``node`` is empty while unbound."""

    node: str
    resource: str
    gpus: int


class Gone(errors.NotFound):
    """The ModelServe was deleted while it was worked on."""


class World:
    """ModelServes, their Deployments and pods, nodes, and the GPU requests of everybody's pods."""

    def __init__(self) -> None:
        self.modelserves: dict[Key, ports.Object] = {}
        self.deployments: dict[Key, ports.Object] = {}
        self.pods: dict[Key, dict[Uid, ports.Object]] = {}
        self.nodes: dict[str, ports.Object] = {}
        self.claims: dict[Uid, GpuClaim] = {}
        self.claims_version = 0  # changes whenever a claim does
        self._deleted: dict[str, None] = {}
        self._suiting: dict[str, list[str]] = {}  # names of nodes, by what pods ask of them

    def put_modelserve(self, body: ports.Object) -> bool:
        """Remember it unless what is known is as new. Returns whether anything changed."""
        if body["metadata"]["uid"] in self._deleted:
            return False
        return self._put(self.modelserves, Key.of(body), body)

    def modelserve(self, key: Key) -> ports.Object:
        """As it is now. Raises Gone."""
        try:
            return self.modelserves[key]
        except KeyError:
            raise Gone(f"{key} was deleted") from None

    def put_deployment(self, body: ports.Object) -> bool:
        """Remember a Deployment under the ModelServe its labels name."""
        key = keys.owner(body)
        return key is not None and self._put(self.deployments, key, body)

    def put_node(self, body: ports.Object) -> bool:
        """Remember a node; True only if something other than its heartbeat changed."""
        name = body["metadata"]["name"]
        known = self.nodes.get(name)
        if not self._put(self.nodes, name, body):
            return False
        if known is None or _asked(known) != _asked(body):
            self._suiting.clear()
            return True
        return _node_essence(known) != _node_essence(body)

    def put_pod(self, body: ports.Object) -> Key | None:
        """Remember a pod. Returns the ModelServe it belongs to if something of it changed."""
        uid = Uid(body["metadata"]["uid"])
        if uid in self._deleted:
            return None
        self._claim(uid, body)
        key = keys.owner(body)
        if key is None:
            return None
        return key if self._put(self.pods.setdefault(key, {}), uid, body) else None

    def drop_modelserve(self, body: ports.Object) -> Key:
        """It is gone; its children follow by garbage collection."""
        key = Key.of(body)
        self._remember_deleted(Uid(body["metadata"]["uid"]))
        known = self.modelserves.get(key)
        if known is not None and known["metadata"]["uid"] == body["metadata"]["uid"]:
            del self.modelserves[key]
        return key

    def drop_deployment(self, body: ports.Object) -> Key | None:
        """It is gone; one of the same name that came since stays."""
        key = keys.owner(body)
        known = self.deployments.get(key) if key else None
        if key and known and known["metadata"]["uid"] == body["metadata"]["uid"]:
            del self.deployments[key]
        return key

    def drop_pod(self, body: ports.Object) -> Key | None:
        """It is gone."""
        uid = Uid(body["metadata"]["uid"])
        self._remember_deleted(uid)
        if self.claims.pop(uid, None) is not None:
            self.claims_version += 1
        key = keys.owner(body)
        if key is not None and key in self.pods:
            self.pods[key].pop(uid, None)
            if not self.pods[key]:
                del self.pods[key]
        return key

    def drop_node(self, body: ports.Object) -> None:
        """It is gone."""
        self.nodes.pop(body["metadata"]["name"], None)
        self._suiting.clear()

    def note_scale(self, key: Key, scale: ports.Object) -> None:
        """Take what the answer to our write of ``/scale`` says over into the Deployment."""
        known = self.deployments.get(key)
        if known is None or known["metadata"]["uid"] != scale["metadata"]["uid"]:
            return
        count = int(scale["spec"].get("replicas", 0))
        metadata = {
            **known["metadata"],
            "resourceVersion": scale["metadata"]["resourceVersion"],
            "managedFields": _owned_by_scaler(known, count),
        }
        spec = {**known["spec"], "replicas": count}
        self.deployments[key] = {**known, "metadata": metadata, "spec": spec}

    def bodies(self, resource: ports.Resource) -> list[ports.Object]:
        """Everything known of one kind: ModelServes, their Deployments or their pods."""
        if resource is ports.MODELSERVES:
            return list(self.modelserves.values())
        if resource is ports.DEPLOYMENTS:
            return list(self.deployments.values())
        return [pod for known in self.pods.values() for pod in known.values()]

    def namesakes(self, modelserve: ports.Object) -> list[Key]:
        """Other ModelServes that answer to the same served name, the one created first ahead."""
        wanted, own = keys.served_name(modelserve), Key.of(modelserve)
        found = [
            (body["metadata"].get("creationTimestamp", ""), key)
            for key, body in self.modelserves.items()
            if key != own and keys.served_name(body) == wanted
        ]
        return [key for _, key in sorted(found)]

    def name_holder(self, modelserve: ports.Object) -> Key | None:
        """The older namesake that gets the requests under the served name; None if it is ours."""
        created = (modelserve["metadata"].get("creationTimestamp", ""), Key.of(modelserve))
        first = next(iter(self.namesakes(modelserve)), None)
        if first is None:
            return None
        other = self.modelserves[first]["metadata"].get("creationTimestamp", ""), first
        return first if other < created else None

    def pods_of(self, key: Key) -> Mapping[Uid, ports.Object]:
        """The ModelServe's pods, terminating ones included."""
        return self.pods.get(key, {})

    def free_gpus(self, nodes: Mapping[str, ports.Object], resource: str) -> dict[str, int]:
        """Unclaimed GPUs of those of the nodes that are ready and schedulable."""
        claimed: dict[str, int] = {}
        for claim in self.claims.values():
            if claim.node and claim.resource == resource:
                claimed[claim.node] = claimed.get(claim.node, 0) + claim.gpus
        return {
            name: max(0, gpus_of(node, resource) - claimed.get(name, 0))
            for name, node in nodes.items()
            if is_ready(node)
        }

    def is_away(self, pod: ports.Object) -> bool:
        """Whether the pod's node does not report, so that nobody knows how the pod is."""
        node = self.nodes.get(pod["spec"].get("nodeName") or "")
        return node is not None and not conditions.is_true(node, "Ready")

    def nodes_for(self, pod: ports.Object) -> dict[str, ports.Object]:
        """Nodes that such a pod may go to, by labels and taints; full ones and silent ones too."""
        key = repr(pod["spec"])
        found = self._suiting.get(key)
        if found is None:
            if len(self._suiting) > MOST_ASKED:
                self._suiting.clear()
            found = self._suiting[key] = [
                name
                for name, node in self.nodes.items()
                if placement.accepts(pod, name, *_asked(node))
            ]
        return {name: self.nodes[name] for name in found}

    def nodes_with(self, gpu_product: str) -> Iterator[tuple[str, ports.Object]]:
        """Nodes by the GPU product label."""
        for name, node in self.nodes.items():
            if (node["metadata"].get("labels") or {}).get(names.LABEL_GPU_PRODUCT) == gpu_product:
                yield name, node

    def _claim(self, uid: Uid, body: ports.Object) -> None:
        claim = gpu_claim(body)
        if claim == self.claims.get(uid):
            return
        self.claims_version += 1
        if claim is None:
            del self.claims[uid]
        else:
            self.claims[uid] = claim

    def _remember_deleted(self, uid: Uid) -> None:
        """Late news of what is deleted, or a late answer to a write, must not bring it back."""
        self._deleted[uid] = None
        if len(self._deleted) > 4096:
            del self._deleted[next(iter(self._deleted))]

    @staticmethod
    def _put(table: dict[Any, ports.Object], key: Any, body: ports.Object) -> bool:
        known = table.get(key)
        if known is not None and known["metadata"]["uid"] == body["metadata"]["uid"]:
            if ports.resource_version(body) <= ports.resource_version(known):
                return False
        elif known is not None and ports.resource_version(body) < ports.resource_version(known):
            return False
        table[key] = body
        return True


def gpu_claim(pod: ports.Object) -> GpuClaim | None:
    """What a pod takes of some ``*/gpu`` resource; None if nothing, or if it has finished."""
    if pods.is_over(pod):
        return None
    for resource, gpus in pods.gpus(pod).items():
        return GpuClaim(pod["spec"].get("nodeName") or "", resource, gpus)
    return None


def gpus_of(node: ports.Object, resource: str) -> int:
    """Allocatable GPUs of a node."""
    return int((node.get("status", {}).get("allocatable") or {}).get(resource, 0))


def is_ready(node: ports.Object) -> bool:
    """Whether a node takes new pods: Ready and not cordoned."""
    if node.get("spec", {}).get("unschedulable"):
        return False
    return conditions.is_true(node, "Ready")


def _asked(node: ports.Object) -> tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]:
    """What a scheduler asks of a node beside its room: labels and taints."""
    return node["metadata"].get("labels") or {}, placement.lasting(node)


def _node_essence(node: ports.Object) -> tuple[Any, ...]:
    metadata, status = node["metadata"], node.get("status", {})
    images = {name for image in status.get("images") or () for name in image.get("names") or ()}
    return (
        metadata.get("annotations"),
        is_ready(node),
        status.get("allocatable"),
        images,
    )


def _owned_by_scaler(deployment: ports.Object, count: int) -> list[ports.Object]:
    """The managedFields after a write of ours to ``/scale``, as far as ``replicas`` goes.

    Who had set the same count goes on owning it with us, by force or not; but not a count of 0,
    which a Scale leaves out.
    """
    shared = count != 0 and deployment["spec"].get("replicas") == count
    kept = []
    for entry in deployment["metadata"].get("managedFields", ()):
        if (entry.get("manager"), entry.get("subresource")) == (names.SCALER, "scale"):
            continue  # Our write before this one; the server has one entry for all of them.
        spec = entry.get("fieldsV1", {}).get("f:spec", {})
        theirs = "f:replicas" in spec and entry.get("subresource") != "status"
        if theirs and not (shared and entry.get("manager") != names.SCALER):
            rest = {name: fields for name, fields in spec.items() if name != "f:replicas"}
            entry = {**entry, "fieldsV1": {**entry["fieldsV1"], "f:spec": rest}}
        kept.append(entry)
    scaler = {
        "manager": names.SCALER,
        "operation": "Apply",
        "subresource": "scale",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    return [*kept, scaler]
