"""One emulated node as the process holds it: rates, images, links, events."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from modelserve import ports
from modelserve.adapters import events
from modelserve.api import names, pool, quantities
from modelserve.api.faults import FaultType
from modelserve.catalog import gpus
from modelserve.catalog import images as catalogue
from modelserve.decide import nodefacts
from servelab.node.faults import troubles
from servelab.node.gpus import slots
from servelab.node.machines import heartbeat, images, links
from servelab.node.pods import planning
from servelab.node.rules import actions, admission, amounts, spam
from servelab.node.rules.context import Host
from servelab.timing import caches


@dataclass(slots=True)
class Machine:
    """A node, and what its pods share. ``object`` is the Node as last seen."""

    object: ports.Object
    facts: planning.NodeFacts
    host: Host
    links: links.NodeLinks
    sink: events.EventSink
    beat: heartbeat.Heartbeat
    images_changed: Callable[[], None]
    ration: spam.Filter = field(default_factory=spam.Filter)
    given: slots.Given = field(default_factory=slots.Given)
    brief: bool = False  # its pods are written once each (see ``profiles``)
    trouble: troubles.Troubles = field(init=False)
    # As its kubelet last told, which keeps it in memory alone: one that starts tells of a cordon.
    cordoned: bool = False

    def __post_init__(self) -> None:
        self.trouble = troubles.of_node(self.object, self.host.scale)

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    def update(self, node: ports.Object) -> None:
        """The Node object changed: its rates count for starts from now on."""
        self.facts = replace(read_facts(node), warm=self.facts.warm)
        self.object = node

    def lost(self, now_unix_s: float) -> bool:
        """Whether it is out of reach; one whose kubelet alone is cut off is not."""
        return self.trouble.own.holding(FaultType.NODE_LOST, now_unix_s) is not None

    def slow(self, owner: str, path: actions.Path, factor: float, now_real_s: float) -> None:
        """One of its paths is so many times slower, for the owner's sake; 1: no more."""
        self.links.slow(owner, path, factor, now_real_s * self.host.scale)

    def left(self, uid: str, now_real_s: float) -> None:
        """A pod is gone, with its GPUs and what was slow for its sake."""
        self.trouble.gone(uid)
        for path in actions.Path:
            self.slow(uid, path, 1.0, now_real_s)

    def remember(self, pods: Callable[[], Iterable[ports.Object]]) -> None:
        """Keep a page cache in the memory that these pods leave; the Node tells what was in it."""
        annotations = self.object["metadata"].get("annotations") or {}
        self.links.remember(
            lambda: room_bytes(self.object, pods()),
            self.images_changed,
            nodefacts.warm_weights(annotations),
        )
        self.facts = replace(self.facts, warm=lambda: self.links.warm)

    def warm_annotation(self) -> str | None:
        """What the node tells of its page cache; None for an empty one."""
        warm = self.links.warm
        return json.dumps(warm, separators=(",", ":")) if warm else None


def room_bytes(node: ports.Object, pods: Iterable[ports.Object]) -> int:
    """Memory of the node that its pods have not asked for, in bytes."""
    memory = ((node.get("status") or {}).get("allocatable") or {}).get("memory", "0")
    asked = (admission.requests(pod).get("memory", 0) for pod in pods)
    return max(0, int(amounts.parse(str(memory)) - sum(asked)))


def gc_policy(spec: pool.GPUPoolSpec | None) -> caches.Policy:
    """When unused images go."""
    if spec is None:
        return caches.Policy()
    kubelet = spec.kubelet
    low = min(kubelet.image_gc_low_threshold_percent, kubelet.image_gc_high_threshold_percent)
    return caches.Policy(kubelet.image_gc_high_threshold_percent, low)


def read_facts(node: ports.Object) -> planning.NodeFacts:
    """GPU and rates of a node. Raises UnknownName, QuantityError."""
    meta = node["metadata"]
    annotations = meta.get("annotations") or {}
    # Labels of a GPU that is cut or shared name something else, and come when its driver is up.
    known = annotations.get(names.NODE_GPU) or meta["labels"][names.LABEL_GPU_PRODUCT]
    gpu = gpus.find(known)
    shared = annotations.get(names.REGISTRY_SHARED_BANDWIDTH)
    return planning.NodeFacts(
        gpu,
        nodefacts.node_rates(annotations),
        meta["labels"].get(names.LABEL_POOL, ""),
        quantities.parse_rate(shared) if shared else None,
        mig_profile=annotations.get(names.NODE_MIG_PROFILE, ""),
    )


def make_host(
    node: ports.Object,
    ip: str,
    scale: float,
    moves: links.NodeLinks,
    *,
    serialize: bool,
    policy: caches.Policy | None = None,
) -> Host:
    """The node's image store, with the images its status lists, and its links."""
    name = node["metadata"]["name"]
    capacity = (node.get("status") or {}).get("capacity") or {}
    disk = int(amounts.parse(str(capacity.get("ephemeral-storage", "0"))))
    store = images.NodeImages(
        moves,
        name,
        serialize=serialize,
        cached_s=catalogue.pull_defaults().cached_s,
        disk_bytes=disk or images.DISK_BYTES,
        policy=policy,
    )
    store.restore((node.get("status") or {}).get("images") or ())
    return Host(ip, store, moves, scale)
