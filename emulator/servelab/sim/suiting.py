"""Which nodes and pools suit a model's pods: the scheduler's rules, asked once for each of them."""

import dataclasses
import json
from dataclasses import dataclass, field
from decimal import Decimal

from modelserve.catalog import gpus
from modelserve.decide import placement
from modelserve.ports import Object
from servelab.node.pools import elastic, growth
from servelab.node.rules import admission, amounts
from servelab.sim import scenario

HOSTNAME = "kubernetes.io/hostname"
PRODUCT, RANKS = ("gpu", "product"), ("gpu", "tensorParallel")
OF_GPU = (PRODUCT, RANKS)
_BYTES = ("memory", "ephemeral-storage")
_ASKED = ("nodeSelector", "affinity", "tolerations")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the pods of a model ask of a node; equal for models whose pods suit the same nodes."""

    gpus: int
    rules: str
    pod: Object = field(compare=False, repr=False)

    @classmethod
    def of(cls, pod: Object, gpus_each: int) -> "Wish":
        """Of pods like this one."""
        asked = [pod["spec"].get(name) for name in _ASKED]
        rules = json.dumps([*asked, admission.requests(pod)], sort_keys=True, default=str)
        return cls(gpus_each, rules, pod)

    def suits(self, node: str, shape: elastic.Shape) -> bool:
        """Whether such a pod may be on that node, were nothing else there."""
        return elastic.Place.of(node, shape).fits(self.pod)

    def suits_pool(self, pool: scenario.Pool) -> bool:
        """Whether one may be on any node that the pool has or may have."""
        if not pool.node_most:
            return False
        like = of_pool(pool)
        if HOSTNAME not in self.rules:
            return self.suits("", like)
        names = (f"{pool.name}-{number}" for number in range(pool.node_most))
        return any(self.suits(name, of_node(like, name)) for name in names)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a pool does not suit: the field of a model's spec that says so, and the reason."""

    place: tuple[str, ...]
    reason: str


def obstacle(wish: Wish, pool: scenario.Pool, product: str) -> Obstacle | None:
    """The first reason why no pod of that kind can be on a node of the pool; None if one can."""
    if wish.suits_pool(pool):
        return None
    shape, spec = of_pool(pool), wish.pod["spec"]
    if gpus.find(pool.gpu).product_label != product or not pool.node_most:
        return Obstacle(PRODUCT, f"has no {product}")
    if pool.gpus_per_node < wish.gpus:
        return Obstacle(RANKS, f"has no {wish.gpus} × {product} on one node")
    for key, value in spec["nodeSelector"].items():
        if shape.labels.get(key) != value:
            reason = f"has no node with label {key}: {value}"
            return Obstacle(("template", "nodeSelector", key), reason)
    for taint in shape.taints:
        if not placement.tolerates(wish.pod, [taint], placement.NOT_SCHEDULED):
            value = f"={taint['value']}" if taint.get("value") else ""
            reason = f"has taint {taint['key']}{value}:{taint['effect']}, not tolerated"
            return Obstacle(("template", "tolerations"), reason)
    for name, amount in admission.requests(wish.pod).items():
        there = shape.allocatable.get(name, Decimal(0))
        if amount > there:
            kind = "Gi" if name in _BYTES else ""
            has, asked = amounts.write(there, kind), amounts.write(amount, kind)
            reason = f"has {has} of {name} for pods on a node, and {asked} are asked for"
            return Obstacle(("template", "resources", "requests", name), reason)
    return Obstacle(("template",), "takes no such pods")


def of_pool(pool: scenario.Pool) -> elastic.Shape:
    """A node of the pool without a name, with its GPUs."""
    return growth.shape(pool.name, pool, gpus.find(pool.gpu))


def of_node(like: elastic.Shape, name: str) -> elastic.Shape:
    """The node of that name, which is like the others of its pool."""
    return dataclasses.replace(like, labels={**like.labels, HOSTNAME: name})
