"""What the decisions need of the world, as Protocols. Adapters and the simulator implement them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from modelserve.api import wire

# A Kubernetes object as the API's own JSON.
Object = Mapping[str, Any]


def resource_version(item: Object) -> int:
    """An object's resource version as a number, 0 without one.

    Kubernetes promises from 1.35 on that versions of one resource compare as integers (KEP-5504);
    on etcd they always did.
    """
    return parse_version(item.get("metadata", {}).get("resourceVersion", ""))


def parse_version(text: str) -> int:
    """A resource version as a number; 0 for one that is none."""
    return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object at the API server, such as apps/v1 deployments."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The URL path; without a namespace, of all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root, *(("namespaces", namespace) if self.namespaced and namespace else ())]
        return "/".join([*parts, self.plural, *filter(None, (name, subresource))])


MODELSERVES = Resource("modelserve.dev", "v1alpha1", "modelserves", "ModelServe")
GPUPOOLS = Resource("emulator.modelserve.dev", "v1alpha1", "gpupools", "GPUPool", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("", "v1", "events", "Event")
RESOURCE_SLICES = Resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False
)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")


def eviction(pod: str) -> Resource:
    """Where that pod's Eviction is created: it is deleted unless a disruption budget forbids."""
    return Resource("", "v1", f"pods/{pod}/eviction", "Eviction")


def eviction_body(pod: str, namespace: str, uid: str = "") -> Object:
    """The Eviction of a pod; with a ``uid``, of that one alone."""
    wanted = {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {}
    meta = {"name": pod, "namespace": namespace}
    return {"apiVersion": "policy/v1", "metadata": meta, **wanted}


class Change(StrEnum):
    """What happened to a watched object. SYNCED closes each list: everything there is was told."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change; of SYNCED ``object`` has only the list's metadata.resourceVersion, if that."""

    change: Change
    object: Object


# Content types of patches.
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Cluster(Protocol):
    """The Kubernetes API, as far as we need it. Raises the ClusterError family."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object: ...

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[Sequence[Object], str]:
        """All objects, and the resource version of the list."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        """List, then watch for ever: survives drops, 410, silence; reports deletions it missed."""
        ...

    async def create(self, resource: Resource, namespace: str | None, body: Object) -> Object: ...

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
    ) -> Object:
        """Server-side apply."""
        ...

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Object | Sequence[Object],
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
        manager: str = "",
    ) -> Object: ...

    async def replace(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Object,
        *,
        subresource: str = "",
    ) -> Object: ...

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        """With a uid only that very object, with a version only as it was then; else Conflict.

        ``grace_s`` in real seconds, for what has one.
        """
        ...


class Clock(Protocol):
    """Time at the edges. One real second is ``scale`` emulated seconds."""

    scale: float

    def now_s(self) -> float:
        """Monotonic emulated seconds."""
        ...

    def real_s(self) -> float:
        """Monotonic real seconds."""
        ...

    def wall_s(self) -> float:
        """Unix time in real seconds; for stamps that people and other processes read."""
        ...

    async def sleep_real(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineSample:
    """What one engine's metrics said. ``at_real_s`` is monotonic."""

    at_real_s: float
    waiting: float
    running: float
    kv_usage: float = 0.0


class MetricSource(Protocol):
    """Queue depths of engines."""

    def sample(self, pod_uid: str) -> EngineSample | None:
        """The newest sample of this pod, whatever its age; None if there never was one."""
        ...


@dataclass(frozen=True, slots=True)
class GatewayView:
    """The newest snapshot of one live gateway. ``at_real_s`` is monotonic."""

    at_real_s: float
    snapshot: wire.DemandSnapshot


class DemandSource(Protocol):
    """Live gateways and what they hold."""

    def gateways(self) -> Sequence[GatewayView]:
        """Live gateways (Lease or stream fresh) that have said within 10 s what they hold."""
        ...

    def silent(self) -> Sequence[str]:
        """Live gateways whose figures are missing or older than 3 s: nothing may shrink then."""
        ...

    def troubles(self) -> Sequence[str]:
        """Of each live gateway that is silent, and not just for a moment, why: a sentence."""
        ...

    async def fence(self, request: wire.FenceRequest) -> bool:
        """Ask all live gateways; True if every one granted. Takes back grants otherwise."""
        ...

    async def unfence(self, namespace: str, name: str, fence_id: str) -> None: ...

    async def share(self, namespace: str, name: str, shares: Mapping[str, int]) -> None:
        """Tell gateways, by name, the most requests each may have in flight at a replica."""
        ...

    def forget(self, namespace: str, name: str) -> None:
        """The model is gone; one of its name is told of anew."""
        ...


class EventSink(Protocol):
    """Kubernetes Events, aggregated by the adapter; never fails its caller."""

    def emit(self, subject: Object, kind: str, reason: str, message: str) -> None:
        """``kind`` is Normal or Warning."""
        ...
