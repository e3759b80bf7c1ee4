"""What the emulator's node loop needs of the engines' side."""

from collections.abc import Mapping
from typing import Any, Protocol


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
