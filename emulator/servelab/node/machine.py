"""One emulated node as the process holds it: rates, images, links, events."""

from collections.abc import Callable
from dataclasses import dataclass, field

from modelserve import ports
from modelserve.adapters import events
from modelserve.api import names, quantities
from modelserve.catalog import gpus
from modelserve.catalog import images as catalogue
from modelserve.decide import coldstart
from servelab.node import images, links, planning, spam, stages
from servelab.node.context import Host


@dataclass(slots=True)
class Machine:
    """A node, and what its pods share. ``object`` is the Node as last seen."""

    object: ports.Object
    facts: planning.NodeFacts
    host: Host
    links: links.NodeLinks
    sink: events.EventSink
    images_changed: Callable[[], None]
    ration: spam.Filter = field(default_factory=spam.Filter)

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    def update(self, node: ports.Object) -> None:
        """The Node object changed: its rates count for starts from now on."""
        self.object = node
        self.facts = read_facts(node)


def read_facts(node: ports.Object) -> planning.NodeFacts:
    """GPU and rates of a node. Raises UnknownName, QuantityError."""
    meta = node["metadata"]
    gpu = gpus.find(meta["labels"][names.LABEL_GPU_PRODUCT])
    annotations = meta.get("annotations") or {}
    shared = annotations.get(names.REGISTRY_SHARED_BANDWIDTH)
    return planning.NodeFacts(
        gpu,
        coldstart.node_rates(annotations),
        meta["labels"].get(names.LABEL_POOL, ""),
        quantities.parse_rate(shared) if shared else None,
    )


def make_host(
    node: ports.Object, ip: str, scale: float, moves: links.NodeLinks, *, serialize: bool
) -> Host:
    """The node's image store, with the images its status lists, and its links."""
    name = node["metadata"]["name"]
    cached_s = catalogue.pull_defaults().cached_s
    store = images.NodeImages(moves, name, serialize=serialize, cached_s=cached_s)
    store.restore((node.get("status") or {}).get("images") or ())
    create_s = max(0.0, cached_s - stages.SANDBOX_S)
    return Host(ip, store, moves, scale, create_s)
