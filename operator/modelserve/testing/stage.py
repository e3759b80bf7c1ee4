"""The operator on a stage: the in-memory API server, gateways and engines played by the test.

``turn`` lets the operator do what it would do now. Pods are created and changed by the test with
``start_pods``, ``bind``, ``make_ready`` and ``delete_pod``: nobody plays the other controllers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelserve import errors, handlers, ports
from modelserve.api import names, wire
from modelserve.api.keys import Key
from modelserve.reconciling import reconciler, world
from modelserve.render import labels
from modelserve.testing.apiserver import MemoryCluster
from modelserve.testing.clock import ManualClock

KINDS = (ports.NODES, ports.MODELSERVES, ports.DEPLOYMENTS, ports.PODS)
PRODUCT = "NVIDIA-H100-80GB-HBM3"


@dataclass
class Gateways:
    """ports.DemandSource: what the test says the gateways see."""

    clock: ports.Clock
    models: dict[str, wire.ModelDemand] = field(default_factory=dict)
    live: tuple[str, ...] = ("gateway-0",)
    grants: bool = True
    mute: tuple[str, ...] = ()  # live gateways that say nothing
    why_mute: str = ""
    fences: list[wire.FenceRequest] = field(default_factory=list)
    unfenced: list[str] = field(default_factory=list)
    shares: dict[str, Mapping[str, int]] = field(default_factory=dict)
    sequence: int = 0

    def gateways(self) -> Sequence[ports.GatewayView]:
        self.sequence += 1
        return [self._view(name, self.models if i == 0 else {}) for i, name in enumerate(self.live)]

    def silent(self) -> Sequence[str]:
        return self.mute

    def troubles(self) -> Sequence[str]:
        return [self.why_mute] if self.why_mute else []

    def say(self, name: str, **figures: Any) -> None:
        """The first gateway's figures of one model in namespace ``default``."""
        self.models[name] = wire.ModelDemand("default", name, **figures)

    async def fence(self, request: wire.FenceRequest) -> bool:
        self.fences.append(request)
        return self.grants

    async def unfence(self, namespace: str, name: str, fence_id: str) -> None:
        self.unfenced.append(fence_id)

    async def share(self, namespace: str, name: str, shares: Mapping[str, int]) -> None:
        self.shares[name] = shares

    def forget(self, namespace: str, name: str) -> None:
        self.shares.pop(name, None)

    def _view(self, gateway: str, models: Mapping[str, wire.ModelDemand]) -> ports.GatewayView:
        told = tuple(models.values())
        snapshot = wire.DemandSnapshot(gateway, "epoch", self.sequence, told)
        return ports.GatewayView(self.clock.real_s(), snapshot)


@dataclass
class Engines:
    """ports.MetricSource: every engine idles unless the test says otherwise."""

    clock: ports.Clock
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)
    silent: bool = False

    def sample(self, pod_uid: str) -> ports.EngineSample | None:
        if self.silent:
            return None
        waiting, running = self.figures.get(pod_uid, (0.0, 0.0))
        return ports.EngineSample(self.clock.real_s(), waiting, running)


@dataclass
class Events:
    """ports.EventSink: remembers."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def emit(self, subject: ports.Object, kind: str, reason: str, message: str) -> None:
        self.told.append((reason, message))

    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.told]


class Stage:
    """One operator and its surroundings; all objects live in namespace ``default``."""

    def __init__(self, time_scale: float = 1.0) -> None:
        self.clock = ManualClock(time_scale)
        self.server_behind_s = 0.0  # the API server's clock, behind ours
        self.cluster = MemoryCluster(lambda: self.clock.wall_s() - self.server_behind_s)
        self.gateways = Gateways(self.clock)
        self.engines = Engines(self.clock)
        self.events = Events()
        self.restart()

    def restart(self) -> None:
        """Another operator process: it knows nothing but what the API server tells."""
        self.marked: set[Key] = set()
        self.world = world.World()
        self._handlers = handlers.Handlers(self.world, self.marked.add, lambda: None)
        self.reconciler = reconciler.Reconciler(
            self.cluster, self.world, self.gateways, self.engines, self.events, self.clock
        )

    async def watch(self) -> None:
        """The operator's watches catch up."""
        for kind in KINDS:
            items, _ = await self.cluster.list(kind)
            uids = {item["metadata"]["uid"] for item in items}
            known = (
                list(self.world.nodes.values()) if kind is ports.NODES else self.world.bodies(kind)
            )
            for body in known:
                if body["metadata"]["uid"] not in uids:
                    self._handlers.gone(kind, body)
            for item in items:
                self._handlers.changed(kind, item)

    async def turn(self, name: str = "llama", times: int = 4) -> float | None:
        """Watches catch up and the operator reconciles, a few times. When it would come back."""
        requeue_real_s = None
        for _ in range(times):
            await self.watch()
            requeue_real_s = await self.reconciler.reconcile(Key("default", name))
        await self.watch()
        return requeue_real_s

    async def live(self, real_s: float, name: str = "llama") -> int:
        """Let so many real seconds pass; it reconciles when marked or due, and at no other time.

        Returns how often it did.
        """
        key, end_real_s, times = Key("default", name), self.clock.real_s() + real_s, 0
        due_real_s: float | None = self.clock.real_s()
        while True:
            await self.watch()
            if self.marked or (due_real_s is not None and due_real_s <= self.clock.real_s()):
                self.marked.clear()
                due_real_s, times = await self.reconciler.reconcile(key), times + 1
                continue
            next_real_s = end_real_s if due_real_s is None else min(due_real_s, end_real_s)
            if next_real_s <= self.clock.real_s():
                return times
            # An instant that rounding puts a hair behind it must come all the same.
            await self.clock.advance(next_real_s - self.clock.real_s() + 1e-6)

    async def add_node(self, name: str = "dgx-0", gpus: int = 8) -> None:
        """A ready GPU node."""
        room = {"nvidia.com/gpu": str(gpus)}
        body = {
            "metadata": {"name": name, "labels": {names.LABEL_GPU_PRODUCT: PRODUCT}},
            "status": {
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        await self.cluster.create(ports.NODES, None, body)

    async def apply(self, name: str = "llama", **spec: Any) -> None:
        """Create a ModelServe of Llama 3.1 8B on one H100, or merge ``spec`` into it."""
        smallest = {
            "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
            "gpu": {"product": PRODUCT},
        }
        try:
            await self.cluster.patch(ports.MODELSERVES, "default", name, {"spec": spec})
        except errors.NotFound:
            body = {"metadata": {"name": name}, "spec": {**smallest, **spec}}
            await self.cluster.create(ports.MODELSERVES, "default", body)

    async def deployment(self, name: str = "llama") -> ports.Object:
        """The live Deployment."""
        return await self.cluster.get(ports.DEPLOYMENTS, "default", name)

    async def replicas(self, name: str = "llama") -> int:
        """The live count."""
        return int((await self.deployment(name))["spec"]["replicas"])

    async def status(self, name: str = "llama") -> dict[str, Any]:
        """The ModelServe's status as written."""
        found = await self.cluster.get(ports.MODELSERVES, "default", name)
        return dict(found.get("status") or {})

    async def condition(self, kind: str, name: str = "llama") -> dict[str, Any]:
        """One condition as written; empty if it is not there."""
        conditions = (await self.status(name)).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    async def scale_deployment(self, replicas: int, name: str = "llama") -> None:
        """What ``kubectl scale deployment`` does."""
        body = {"spec": {"replicas": replicas}}
        await self.cluster.patch(
            ports.DEPLOYMENTS, "default", name, body, subresource="scale", manager="kubectl"
        )

    async def wake(self) -> str:
        """A request wakes the model ``llama`` and is answered. Returns the pod's UID."""
        self.gateways.say("llama", held=1, arrivals=1)
        await self.turn()
        uid = await self.start_pod("llama-1")
        await self.set_ready("llama-1")
        self.gateways.say("llama", arrivals=1, completions=1, service_sum_s=2.0)
        await self.turn()
        return uid

    async def start_pod(self, pod: str, name: str = "llama", node: str = "dgx-0") -> str:
        """The ReplicaSet creates a pod, the scheduler binds it. Returns its UID."""
        template = (await self.deployment(name))["spec"]["template"]
        metadata = {**template["metadata"], "name": pod}
        metadata["labels"] = labels.of_children(name)
        spec = {**template["spec"], **({"nodeName": node} if node else {})}
        body = {"metadata": metadata, "spec": spec}
        made = await self.cluster.create(ports.PODS, "default", body)
        return str(made["metadata"]["uid"])

    async def set_ready(self, pod: str, ready: bool = True) -> None:
        """The kubelet says whether the pod is ready."""
        conditions = [{"type": "Ready", "status": str(ready)}]
        await self.set_pod_status(pod, {"phase": "Running", "conditions": conditions})

    async def set_pod_status(self, pod: str, status: Mapping[str, Any]) -> None:
        """Write a pod's status."""
        body = {"status": dict(status)}
        await self.cluster.patch(ports.PODS, "default", pod, body, subresource="status")

    async def delete_pod(self, pod: str) -> None:
        """It is gone at once."""
        await self.cluster.delete(ports.PODS, "default", pod, grace_s=0)
