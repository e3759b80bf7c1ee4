"""What the emulator's node loop needs of the engines' side, and of a pod's life."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from servelab.node import actions, podspec


class Engines(Protocol):
    """Mock engines by pod UID, somewhere in worker processes. Raises ModelServeError."""

    async def reserve(
        self,
        uid: str,
        container: Mapping[str, Any],
        annotations: Mapping[str, str],
        gpu_product: str,
        seed: int,
    ) -> str:
        """Bind an address ("host:port") that refuses connections."""
        ...

    async def serve(self, uid: str) -> None: ...

    async def drain(self, uid: str, grace_real_s: float) -> None: ...

    async def kill(self, uid: str) -> None: ...


class Life(Protocol):
    """One pod's life, as its driver sees it. Times are Unix seconds, real."""

    @property
    def pod(self) -> podspec.Pod: ...

    @property
    def finished(self) -> bool:
        """Nothing will ever happen again."""
        ...

    def advance(self, now_real_s: float) -> list[actions.Action]:
        """Let everything happen that is due, and return what is to be done, in order."""
        ...

    def next_wake_real_s(self) -> float: ...

    def update(self, pod: podspec.Pod, now_real_s: float) -> None:
        """The object changed."""
        ...

    def delete(self, deadline_real_s: float) -> None:
        """Its deletion was asked for."""
        ...

    def moved(self, now_real_s: float) -> None:
        """A pull or a load of its ends at another time than was told."""
        ...

    def removed(self, now_real_s: float) -> list[actions.Action]:
        """Its object is gone: what is still to be told."""
        ...

    def reserved(self, dial: str) -> None: ...

    def serving(self, now_real_s: float) -> None: ...

    def drained(self, now_real_s: float) -> None: ...

    def exited(self, exit_code: int, now_real_s: float) -> None: ...

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """The container's entry in the pod's status, empty if that has none yet.

        None if there is no such container.
        """
        ...

    def pulls(self) -> Sequence[str]:
        """Keys of its image pulls that may be under way."""
        ...
