"""What the emulator's node loop needs of the engines' side."""

from collections.abc import Mapping
from typing import Any, Protocol


class Engines(Protocol):
    """Mock engines by key, somewhere in worker processes. Raises ModelServeError.

    The key of a pod's first engine is the pod's UID, of each further one ``<UID>/<container>``.
    """

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

    async def open(self, uid: str) -> None:
        """Listen, and answer as an engine that still loads."""
        ...

    async def serve(self, uid: str) -> None: ...

    async def disturb(self, uid: str, *, hung: bool, factor: float) -> None:
        """Let it answer nothing, and its steps take ``factor`` as long; or be well again."""
        ...

    async def drain(self, uid: str, grace_real_s: float) -> None: ...

    async def kill(self, uid: str) -> None: ...
