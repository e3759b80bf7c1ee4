"""What the pods of a ModelServe carry besides their engine: labels, tolerations, resources."""

from typing import Annotated, Literal

from pydantic import Field

from modelserve.api.schema import Name, Node


class Toleration(Node):
    """A toleration, as in a pod."""

    key: Annotated[str, Field(max_length=317)] | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: Annotated[str, Field(max_length=63)] | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class Resources(Node):
    """Requests and limits of the engine container besides its GPUs, such as cpu and memory."""

    requests: dict[str, Annotated[str, Field(max_length=64)]] = Field(default={})
    limits: dict[str, Annotated[str, Field(max_length=64)]] = Field(default={})


class Template(Node):
    """What the pods carry besides."""

    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default={}, description="Further labels of the pods."
    )
    annotations: dict[str, Annotated[str, Field(max_length=262_144)]] = Field(
        default={}, description="Further annotations of the pods."
    )
    tolerations: list[Toleration] = Field(
        default=[], max_length=64, description="Further tolerations; the GPU taint's is there."
    )
    node_selector: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default={}, description="Further labels a node must have; the GPU product is one already."
    )
    resources: Resources = Resources()
    priority_class_name: Name | None = Field(None, description="Priority class of the pods.")
