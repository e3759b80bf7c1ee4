"""Which links the transfers of a cold start pass, and under which names others find them there.

| link | who shares it |
|---|---|
| ``registry/<pool>`` | all pulls of a pool, if the registry's own rate is known |
| ``node/<node>/registry`` | pulls of one node: what it downloads at most |
| ``node/<node>/net`` | everything that comes over the node's network card |
| ``node/<node>/unpack`` | unpacking on one node |
| ``node/<node>/read/<class>`` | weight reads of one node from one kind of storage |
| ``node/<node>/memory`` | weight reads of one node from its page cache |
| ``storage/<class>`` | weight reads of all nodes from one backend |
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from modelserve.catalog import layers as catalogue
from modelserve.decide import coldstart, moving, nodefacts
from servelab.timing import transfers


@dataclass(frozen=True, slots=True)
class Route:
    """A work, and bytes per second of the links it passes."""

    work: transfers.Work
    links: Mapping[str, float]


def node(name: str) -> str:
    """What the names of a node's own links begin with."""
    return f"node/{name}"


def on_node(node: str, part: str) -> str:
    """A link of one node."""
    return f"node/{node}/{part}"


def registry(pool: str) -> str:
    """The link of the registry that all nodes of a pool pull from."""
    return f"registry/{pool}"


def backend(storage_class: str) -> str:
    """The link of a storage backend that all nodes read from."""
    return f"storage/{storage_class}"


@dataclass(frozen=True, slots=True)
class ImagePull(transfers.Work):
    """The pull of a whole image, which ``only`` cuts down to the layers that are missing.

    ``factor`` is its jitter. ``links`` are those that any pull of it passes.
    """

    layers: tuple[catalogue.Layer, ...] = ()
    rates: nodefacts.NodeRates | None = None
    node: str = ""
    registry_bytes_per_s: float | None = None
    pool: str = ""
    factor: float = 1.0

    @classmethod
    def of(
        cls,
        every: tuple[catalogue.Layer, ...],
        rates: nodefacts.NodeRates,
        node: str,
        *,
        registry_bytes_per_s: float | None = None,
        pool: str = "",
        factor: float = 1.0,
    ) -> tuple["ImagePull", Mapping[str, float]]:
        """The pull of all these layers, and the links it passes."""
        size = sum(layer.compressed_bytes for layer in every)
        planned = coldstart.pull_of(every, rates, size)
        shared = registry_bytes_per_s
        route = pull(planned, node, registry_bytes_per_s=shared, pool=pool, factor=factor)
        work = route.work
        place = (every, rates, node, registry_bytes_per_s, pool, factor)
        return cls(work.duration_s, work.size_bytes, work.stages, *place), route.links

    def only(self, missing: Sequence[catalogue.Layer]) -> transfers.Work:
        """The pull if just these layers are missing; its size is what they weigh."""
        assert self.rates is not None
        planned = coldstart.pull_of(missing, self.rates, round(self.size_bytes))
        return pull(
            planned,
            self.node,
            registry_bytes_per_s=self.registry_bytes_per_s,
            pool=self.pool,
            factor=self.factor,
        ).work


@dataclass(frozen=True, slots=True)
class WeightRead(transfers.Work):
    """A read of weights from storage, and ``warm`` the one from the page cache, if that has them.

    ``file`` names them there. Without ``warm``, nothing is kept.
    """

    file: str = ""
    warm: transfers.Work | None = None

    @classmethod
    def of(cls, cold: Route, file: str, warm: Route | None) -> Route:
        """Both as one, with the links of both."""
        work = cold.work
        read = cls(
            work.duration_s, work.size_bytes, work.stages, file, None if warm is None else warm.work
        )
        return Route(read, {**cold.links, **(warm.links if warm is not None else {})})


def weights(
    planned: moving.Transfer,
    node: str,
    storage_class: str,
    *,
    connections: int = 1,
    factor: float = 1.0,
) -> Route:
    """The read of a replica's weights. ``connections``: ranks that read; ``factor``: jitter."""
    path, cap, links = _links(planned.limits, node, storage_class)
    stage = transfers.Stage(planned.moved_bytes, path, cap, planned.latency_s, connections)
    return _route((stage.scaled(factor),), planned.n_bytes, links)


def pull(
    planned: moving.Pull,
    node: str,
    *,
    registry_bytes_per_s: float | None = None,
    pool: str = "",
    factor: float = 1.0,
) -> Route:
    """An image pull, in three stages that alone take what ``moving.Pull`` says.

    The largest layer arrives while nothing unpacks, then download and unpacking go on at the pace
    of the slower, then the last layer unpacks. ``registry_bytes_per_s`` is what the registry gives
    all nodes of ``pool`` together.
    """
    size, down = planned.download.n_bytes, planned.download
    if planned.present:
        return Route(transfers.Work(planned.cached_s * factor, size), {})
    path, cap, links = _links(down.limits, node, "")
    if registry_bytes_per_s is not None:
        name = registry(pool)
        path, links = (name, *path), {name: registry_bytes_per_s, **links}
    unpack = on_node(node, "unpack")
    links[unpack] = planned.unpack_bytes_per_s
    last = planned.largest_layer_share * size
    stages = (
        transfers.Stage(last, path, cap, down.latency_s),
        transfers.Stage(size - last, (*path, unpack), cap),
        transfers.Stage(last, (unpack,)),
    )
    return _route(tuple(stage.scaled(factor) for stage in stages), size, links)


def then(first: Route, second: Route) -> Route:
    """One after the other, as a read of what the page cache has and then of the rest."""
    one, two = first.work, second.work
    stages = tuple(stage for work in (one, two) for stage in work.stages or _waiting(work))
    work = transfers.Work(one.duration_s + two.duration_s, one.size_bytes + two.size_bytes, stages)
    return Route(work, {**first.links, **second.links})


def alone_s(stages: Iterable[transfers.Stage], links: Mapping[str, float]) -> float:
    """Seconds that these stages take with those links for themselves."""
    total_s = 0.0
    for stage in stages:
        rate = min([stage.cap_bytes_per_s, *(links[link] for link in stage.path)])
        total_s += stage.latency_s + (stage.size_bytes / rate if stage.size_bytes else 0.0)
    return total_s


def _waiting(work: transfers.Work) -> tuple[transfers.Stage, ...]:
    return (transfers.Stage(latency_s=work.duration_s),)


def _route(
    stages: tuple[transfers.Stage, ...], size_bytes: float, links: Mapping[str, float]
) -> Route:
    return Route(transfers.Work(alone_s(stages, links), size_bytes, stages), links)


def _links(
    limits: Iterable[moving.Limit], node: str, storage_class: str
) -> tuple[tuple[str, ...], float, dict[str, float]]:
    """Path, own cap, and rates of the links, from the limits of a planned transfer."""
    names = {
        moving.Binds.REGISTRY: on_node(node, "registry"),
        moving.Binds.NETWORK: on_node(node, "net"),
        moving.Binds.UNPACK: on_node(node, "unpack"),
        moving.Binds.STORAGE: on_node(node, f"read/{storage_class}"),
        moving.Binds.PAGE_CACHE: on_node(node, "memory"),
        moving.Binds.SHARED_STORAGE: backend(storage_class),
    }
    cap = min((limit.bytes_per_s for limit in limits if not limit.shared), default=math.inf)
    links = {names[limit.binds]: limit.bytes_per_s for limit in limits if limit.shared}
    return tuple(links), cap, links
