"""The GPUPool a user writes: emulated GPU nodes (emulator.modelserve.dev/v1alpha1)."""

import re
from typing import Annotated, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from modelserve.api import names
from modelserve.api.faults import Fault
from modelserve.api.schema import Amount, Name, Node, Rate

MOST_GPUS = 64  # of one node
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_WORD}"
# Labels that say which node it is, and whose.
_OF_EACH = ("kubernetes.io/hostname", names.LABEL_POOL, names.LABEL_VIRTUAL)


class ElasticNodes(Node):
    """Nodes that come when pods do not fit and go when idle."""

    # The schema has no form for a number or fields: the API server lets every field through.
    model_config = Node.model_config | ConfigDict(extra="forbid")

    min: Annotated[int, Field(ge=0, le=10_000)] = Field(0, description="Nodes that always stand.")
    max: Annotated[int, Field(ge=1, le=10_000)] = Field(description="Most nodes.")
    boot_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        95, description="From asked for to GPUs advertised, in seconds."
    )
    device_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        15,
        description="The last of them: from the node's Ready to its GPUs, until driver and device "
        "plugin are up.",
    )
    idle_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        600, description="Seconds without a pod, but for DaemonSets', before a node goes."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is more than max {self.max}; raise max or lower min")
        return self


class PoolDrain(Node):
    """How nodes go that the pool no longer asks for."""

    notice_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        120,
        description="From cordoned and tainted to off, in seconds. Pods are evicted, as soon as "
        "disruption budgets let them; what is left at the end goes with the machine.",
    )


class PoolMig(Node):
    """Multi-instance GPUs: every GPU is cut alike."""

    strategy: Annotated[str, Field(pattern="^(single|mixed)$")] = Field(
        "single",
        description="single: slices are nvidia.com/gpu, of one profile; mixed: nvidia.com/mig-….",
    )
    profiles: dict[str, Annotated[int, Field(ge=1, le=7)]] = Field(
        min_length=1,
        max_length=8,
        description="Slices of one GPU by profile, such as 1g.10gb: 7. An engine on one has the "
        "slice's memory, and its part of bandwidth and multiprocessors.",
    )


class PoolTimeSlicing(Node):
    """GPUs that the device plugin hands out several times."""

    replicas: Annotated[int, Field(ge=2, le=64)] = Field(description="How often each GPU counts.")


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
    layer_bandwidth: Rate | None = Field(
        None,
        description="Of one layer's download, of which three run at once; left out: no limit.",
    )
    unpack_bandwidth: Rate = Field("120MB/s", description="Compressed bytes unpacked per second.")


class PoolKubelet(Node):
    """What the emulated kubelets say of themselves."""

    max_pods: Annotated[int, Field(ge=1, le=10_000)] = Field(110, description="Pods per node.")
    serialize_image_pulls: bool = Field(True, description="One pull at a time per node.")
    image_gc_high_threshold_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        85, description="Per cent of the disk from which on unused images go."
    )
    image_gc_low_threshold_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        80, description="Per cent of the disk down to which they go."
    )
    profile: Annotated[str, Field(pattern="^(Full|Fast)$")] = Field(
        "Full",
        description="Full: every status and event that a kubelet writes; Fast: a pod without an "
        "engine is written once, when it runs, and has no events but warnings.",
    )
    version: Annotated[str, Field(max_length=64, pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+")] = Field(
        "v1.37.2", description="Kubelet version the node reports."
    )

    @model_validator(mode="after")
    def _settling(self) -> Self:
        high, low = self.image_gc_high_threshold_percent, self.image_gc_low_threshold_percent
        if low >= high:
            raise ValueError(
                f"imageGcLowThresholdPercent {low} is not less than "
                f"imageGcHighThresholdPercent {high}; lower the one or raise the other"
            )
        return self


class Taint(Node):
    """A node taint."""

    key: Annotated[str, Field(min_length=1, max_length=317, pattern=f"^{_KEY}$")]
    value: Annotated[str, Field(max_length=63, pattern=f"^({_WORD})?$")] = ""
    effect: Annotated[str, Field(pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")]


class GPUPoolSpec(Node):
    """A set of equal GPU nodes."""

    gpu: Name = Field(description="GPU product label, catalogue key or alias.")
    gpus_per_node: Annotated[int, Field(ge=1, le=MOST_GPUS)] = Field(
        8, description="GPUs of one node."
    )
    nodes: Annotated[int, Field(ge=0, le=10_000)] | ElasticNodes = Field(
        1,
        description="Nodes: a number, or {min, max, bootSeconds, deviceSeconds, idleSeconds}.",
    )
    drain: PoolDrain = PoolDrain()
    storage: PoolStorage = PoolStorage()
    network: PoolNetwork = PoolNetwork()
    registry: PoolRegistry = PoolRegistry()
    kubelet: PoolKubelet = PoolKubelet()
    cpu: Amount = Field("96", description="CPUs of one node.")
    memory: Amount = Field("1Ti", description="Memory of one node.")
    disk: Amount = Field(
        "3686Gi", description="Disk of one node, for images and ephemeral storage."
    )
    mig: PoolMig | None = Field(None, description="Cut GPUs into MIG slices; left out: whole GPUs.")
    time_slicing: PoolTimeSlicing | None = Field(
        None, description="Share GPUs in time; left out: each is one pod's."
    )
    devices: Annotated[str, Field(pattern="^(DevicePlugin|DRA)$")] = Field(
        "DevicePlugin",
        description="DevicePlugin: GPUs are extended resources; DRA: ResourceSlices of driver "
        "gpu.nvidia.com, for claims.",
    )
    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default={}, description="Further labels of the nodes."
    )
    taints: list[Taint] | None = Field(
        None, max_length=32, description="Left out: <GPU resource>=present:NoSchedule."
    )
    faults: list[Fault] = Field(
        default=[], max_length=64, description="What goes wrong on its nodes, and when."
    )

    @field_validator("labels")
    @classmethod
    def _labelled(cls, labels: dict[str, str]) -> dict[str, str]:
        for key, value in labels.items():
            if not re.fullmatch(_KEY, key):
                raise ValueError(f"{key!r} is no label's name; write for instance example.com/team")
            if key in _OF_EACH:
                raise ValueError(f"{key} is every node's own and no pool's to set; leave it out")
            if value and not re.fullmatch(_WORD, value):
                raise ValueError(f"{value!r} is no value of a label; write for instance blue-2")
        return labels

    @field_validator("taints")
    @classmethod
    def _once(cls, taints: list[Taint] | None) -> list[Taint] | None:
        seen: set[tuple[str, str]] = set()
        for taint in taints or ():
            if (taint.key, taint.effect) in seen:
                raise ValueError(f"{taint.key}:{taint.effect} is there twice; leave one out")
            seen.add((taint.key, taint.effect))
        return taints

    @property
    def node_count(self) -> int:
        """Nodes that always stand: the fixed number, or an elastic pool's minimum."""
        return self.nodes if isinstance(self.nodes, int) else self.nodes.min

    @property
    def node_most(self) -> int:
        """Nodes that there can be."""
        return self.nodes if isinstance(self.nodes, int) else self.nodes.max

    @property
    def elastic(self) -> ElasticNodes | None:
        """How nodes come and go; None where their number is fixed."""
        return None if isinstance(self.nodes, int) else self.nodes
