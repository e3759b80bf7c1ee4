"""The GPUPool a user writes: emulated GPU nodes (emulator.modelserve.dev/v1alpha1)."""

from typing import Annotated, Any

from pydantic import Field

from modelserve.api.schema import Name, Node, Rate


class ElasticNodes(Node):
    """Nodes that come when pods do not fit and go when idle. Not yet acting: `min` nodes stand."""

    min: Annotated[int, Field(ge=0, le=10_000)] = Field(0, description="Nodes that always stand.")
    max: Annotated[int, Field(ge=1, le=10_000)] = Field(description="Most nodes. Not yet acting.")
    boot_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        95, description="From asked for to GPUs advertised, in seconds. Not yet acting."
    )
    idle_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        600, description="Idle seconds before a node goes. Not yet acting."
    )


class PoolStorage(Node):
    """The storage path of the weights."""

    class_: Name | None = Field(
        "nvme",
        alias="class",
        description="Storage class of the catalogue; nvme leaves it to the model's own.",
    )
    read_bandwidth: Rate | None = Field(None, description="Of one node; left out: the class's.")
    shared_bandwidth: Rate | None = Field(
        None, description="Of the whole backend, which the reads of all nodes share."
    )


class PoolNetwork(Node):
    """The nodes' network."""

    bandwidth: Rate = Field("25GB/s", description="Of one node's network card.")


class PoolRegistry(Node):
    """How images arrive."""

    bandwidth: Rate = Field("250MB/s", description="Download rate of one node.")
    shared_bandwidth: Rate | None = Field(
        None, description="Of the registry, which the pulls of all nodes share."
    )
    unpack_bandwidth: Rate = Field("120MB/s", description="Compressed bytes unpacked per second.")


class PoolKubelet(Node):
    """What the emulated kubelets say of themselves."""

    max_pods: Annotated[int, Field(ge=1, le=10_000)] = Field(110, description="Pods per node.")
    serialize_image_pulls: bool = Field(True, description="One pull at a time per node.")
    version: Annotated[str, Field(max_length=64, pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+")] = Field(
        "v1.37.2", description="Kubelet version the node reports."
    )


class Taint(Node):
    """A node taint."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    value: Annotated[str, Field(max_length=63)] = ""
    effect: Annotated[str, Field(pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")]


class GPUPoolSpec(Node):
    """A set of equal GPU nodes."""

    gpu: Name = Field(description="GPU product label, catalogue key or alias.")
    gpus_per_node: Annotated[int, Field(ge=1, le=64)] = Field(8, description="GPUs of one node.")
    nodes: int | ElasticNodes = Field(
        1,
        description="Nodes: a number, or {min, max, bootSeconds, idleSeconds}; only min acts yet.",
    )
    storage: PoolStorage = PoolStorage()
    network: PoolNetwork = PoolNetwork()
    registry: PoolRegistry = PoolRegistry()
    kubelet: PoolKubelet = PoolKubelet()
    cpu: Annotated[str, Field(max_length=32)] = Field("96", description="CPUs of one node.")
    memory: Annotated[str, Field(max_length=32)] = Field("1Ti", description="Memory of one node.")
    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default={}, description="Further labels of the nodes."
    )
    taints: list[Taint] | None = Field(
        None, max_length=32, description="Left out: <GPU resource>=present:NoSchedule."
    )
    faults: list[dict[str, Any]] = Field(
        default=[], max_length=64, description="Faults to play. Not yet acting."
    )

    @property
    def node_count(self) -> int:
        """Nodes that stand now: the fixed number, or an elastic pool's minimum."""
        return self.nodes if isinstance(self.nodes, int) else self.nodes.min
