"""The GPU nodes: who has room, who has which image and weights, and who is on them.

Placement is the kube-scheduler's as far as it matters here: of the nodes that suit a pod one with
room, the image on it preferred, then the one with most room. Pods that find none are tried again,
oldest first, whenever GPUs get free.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from servelab.node.faults import troubles
from servelab.node.machines import images, links
from servelab.node.pods import planning
from servelab.node.pools import elastic
from servelab.sim.suiting import Wish


class Tenant(Protocol):
    """A pod on a node, as what befalls the node needs it."""

    uid: str
    image: str
    memory_bytes: int

    def cut(self, *, off: bool, now_s: float) -> None:
        """Its kubelet is out of reach, or back; if the node was thought dead, it is still."""

    def judge(self, *, alive: bool, now_s: float) -> None:
        """The node controller thinks the node dead, or well again."""

    def evict(self, now_s: float) -> None:
        """It is deleted, with its grace."""

    def vanish(self, now_s: float) -> None:
        """Its machine is gone."""


@dataclass(slots=True, eq=False)
class Node:
    """One node. ``gpus`` it has; ``broken`` of them are taken away; ``taken`` are its pods'."""

    name: str
    pool: str
    shape: elastic.Shape
    facts: planning.NodeFacts
    gpus: int
    memory_bytes: int
    came_s: float
    images: images.NodeImages
    links: links.NodeLinks
    trouble: troubles.Troubles
    broken: int = 0
    taken: int = 0
    advertised: bool = True  # its GPUs are there
    cordoned: bool = False
    dead: bool = False  # to the node controller
    cut_off: bool = False
    outages: int = 0  # how often it was cut off, or came back
    sweeping: bool = False  # its images are to be looked through
    tenants: dict[str, Tenant] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """GPUs that a new pod may get."""
        if self.cordoned or self.dead or not self.advertised:
            return 0
        return max(0, self.gpus - self.broken - self.taken)

    def room_bytes(self) -> int:
        """Memory that its pods have not asked for: the page cache's."""
        asked = sum(tenant.memory_bytes for tenant in self.tenants.values())
        return max(0, self.memory_bytes - asked)


class Nodes:
    """All nodes there are at a moment."""

    def __init__(self) -> None:
        self.changes = 0  # of room, images and weights
        self._nodes: dict[str, Node] = {}
        self._suiting: dict[Wish, dict[str, Node]] = {}
        self._rooms: dict[Wish, int] = {}  # until the next change
        self._likeliest: dict[tuple[Wish, str], Node | None] = {}

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __contains__(self, node: Node) -> bool:
        return self._nodes.get(node.name) is node

    def add(self, node: Node) -> None:
        """It has come."""
        self._nodes[node.name] = node
        for wish, found in self._suiting.items():
            if wish.suits(node.name, node.shape):
                found[node.name] = node
        self.changed()

    def remove(self, node: Node) -> None:
        """It is gone."""
        for found in (self._nodes, *self._suiting.values()):
            found.pop(node.name, None)
        self.changed()

    def suiting(self, wish: Wish) -> Mapping[str, Node]:
        """The nodes that such pods may be on, full ones too."""
        found = self._suiting.get(wish)
        if found is None:
            found = self._suiting[wish] = {
                node.name: node for node in self if wish.suits(node.name, node.shape)
            }
        return found

    def room(self, wish: Wish) -> int:
        """How many more such pods fit."""
        room = self._rooms.get(wish)
        if room is None:
            nodes = self.suiting(wish).values()
            room = self._rooms[wish] = sum(node.free // wish.gpus for node in nodes)
        return room

    def likeliest(self, wish: Wish, image: str) -> Node | None:
        """The node that the next such pod most likely gets, full ones last; None without any."""
        key = wish, image
        if key not in self._likeliest:
            found = self.suiting(wish).values()
            self._likeliest[key] = min(found, key=_rank(wish.gpus, image), default=None)
        return self._likeliest[key]

    def place(self, wish: Wish, tenant: Tenant) -> Node | None:
        """Take the GPUs of a node with room; None if there is none."""
        node = self.likeliest(wish, tenant.image)
        if node is None or node.free < wish.gpus:
            return None
        node.taken += wish.gpus
        node.tenants[tenant.uid] = tenant
        self.changed()
        return node

    def give_back(self, node: Node, gpus: int, tenant: Tenant) -> None:
        """A pod on it is gone."""
        node.taken -= gpus
        del node.tenants[tenant.uid]
        self.changed()

    def changed(self) -> None:
        """What a prediction or a placement depends on is another."""
        self.changes += 1
        self._rooms.clear()
        self._likeliest.clear()


def _rank(gpus_each: int, image: str) -> Callable[[Node], tuple[bool, bool, int]]:
    """A scheduler's order: with room, with the image (by its full name), with most room."""

    def rank(node: Node) -> tuple[bool, bool, int]:
        free = node.free
        return free < gpus_each, image not in node.images.names, -free

    return rank
