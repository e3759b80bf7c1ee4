"""The GPU nodes: who has room, who has which image, and who waits for room.

Placement is the kube-scheduler's as far as it matters here: a node with room, the image on it
preferred, then the one with most room. Pods that find none are tried again, oldest first, whenever
GPUs get free.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from modelserve.catalog import gpus
from modelserve.decide import nodefacts
from servelab.node.pools import registration
from servelab.sim import scenario


@dataclass(slots=True)
class Node:
    """One node. ``arriving`` are those that wait for an image that is being pulled."""

    name: str
    pool: str
    product: str
    rates: nodefacts.NodeRates
    gpus: int
    free: int
    images: set[str] = field(default_factory=set)
    arriving: dict[str, list[Callable[[float], None]]] = field(default_factory=dict)


class Nodes:
    """All nodes of a scenario."""

    def __init__(self, pools: Iterable[scenario.Pool]) -> None:
        self.changes = 0  # of room and images
        self._rooms: dict[tuple[str, int], int] = {}  # until the next change
        self._likeliest: dict[tuple[str, int, str], Node | None] = {}
        self._by_product: dict[str, list[Node]] = {}
        for pool in pools:
            product = gpus.find(pool.gpu).product_label
            annotations = {k: v for k, v in registration.render_annotations(pool).items() if v}
            rates = nodefacts.node_rates(annotations)
            for number in range(pool.node_count):
                room = pool.gpus_per_node
                node = Node(f"{pool.name}-{number + 1}", pool.name, product, rates, room, room)
                self._by_product.setdefault(product, []).append(node)

    @property
    def gpus(self) -> int:
        """All GPUs there are."""
        return sum(node.gpus for nodes in self._by_product.values() for node in nodes)

    def of(self, product: str) -> Sequence[Node]:
        """The nodes with such GPUs."""
        return self._by_product.get(product, ())

    def room(self, product: str, gpus_each: int) -> int:
        """How many more replicas with so many GPUs fit."""
        key = product, gpus_each
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = sum(node.free // gpus_each for node in self.of(product))
        return room

    def likeliest(self, product: str, gpus_each: int, image: str) -> Node | None:
        """The node that the next replica most likely gets, full ones last; None without any."""
        key = product, gpus_each, image
        if key not in self._likeliest:
            self._likeliest[key] = min(
                self.of(product),
                key=lambda node: (node.free < gpus_each, image not in node.images, -node.free),
                default=None,
            )
        return self._likeliest[key]

    def place(self, product: str, gpus_each: int, image: str) -> Node | None:
        """Take the GPUs of a node with room; None if there is none."""
        node = self.likeliest(product, gpus_each, image)
        if node is None or node.free < gpus_each:
            return None
        node.free -= gpus_each
        self._changed()
        return node

    def give_back(self, node: Node, gpus: int) -> None:
        """A pod on it is gone."""
        node.free += gpus
        self._changed()

    def keep(self, node: Node, image: str) -> None:
        """The image has arrived."""
        node.images.add(image)
        self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self._rooms.clear()
        self._likeliest.clear()
