"""What the kubelet API needs of the emulator: nodes, their pods, and what engines do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from modelserve import ports
from servelab.engine import metering
from servelab.node.pods import journal, podspec


class ServedNode(Protocol):
    """A node as its Node object tells."""

    @property
    def name(self) -> str: ...

    @property
    def object(self) -> ports.Object: ...

    def lost(self, now_unix_s: float) -> bool:
        """Whether its machine is out of reach."""
        ...


class ServedPod(Protocol):
    """A pod on one of the nodes."""

    @property
    def pod(self) -> podspec.Pod: ...

    @property
    def journals(self) -> dict[str, journal.Journal]: ...

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """The container's entry in the pod's status; None if there is no such container."""
        ...

    def xid(self, container: str) -> int:
        """Number of the XID error that the container's GPUs have; 0 for none."""
        ...


class Host(Protocol):
    """The emulator. Times are Unix seconds, real; ``scale`` is emulated seconds in one of them."""

    @property
    def scale(self) -> float: ...

    def unix_s(self) -> float: ...

    async def sleep_real(self, seconds: float) -> None: ...

    def served(self) -> Iterable[ServedPod]: ...

    def lookup(self, namespace: str, name: str) -> ServedPod | None: ...

    def served_nodes(self) -> Mapping[str, ServedNode]: ...

    async def loads(self) -> Mapping[str, metering.Load]:
        """What engines have done so far, by key."""
        ...

    def dial(self, engine: str, port: int = 0) -> str:
        """Where the engine of that key listens, or a port beside its main one; empty if nowhere."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A running container."""

    served: ServedPod
    container: podspec.Container
    started_unix_s: float
