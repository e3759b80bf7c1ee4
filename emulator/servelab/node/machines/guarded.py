"""The cluster as one writes to it who has many nodes, and may not be their one any more."""

from collections.abc import Awaitable, Callable, Sequence

from modelserve import errors, ports
from servelab.node.machines import pacing


class Guarded:
    """ports.Cluster whose writes fail, as if it were away, as long as ``may_write`` says no.

    Asked as each is sent, and not before: what waited, for whatever reason, may be another's now.
    They have one pace.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        may_write: Callable[[], bool],
        sleep_real: Callable[[float], Awaitable[None]],
    ) -> None:
        self._cluster = cluster
        self._may_write = may_write
        self._pace = pacing.Pace(sleep_real, self._check)
        self.get = cluster.get
        self.list = cluster.list
        self.watch = cluster.watch

    async def create(
        self, resource: ports.Resource, namespace: str | None, body: ports.Object
    ) -> ports.Object:
        if resource.kind == "Eviction":
            # What a disruption budget forbids is answered like what a server has no time for.
            self._check()
            return await self._cluster.create(resource, namespace, body)
        async with self._pace:
            return await self._cluster.create(resource, namespace, body)

    async def apply(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
    ) -> ports.Object:
        async with self._pace:
            return await self._cluster.apply(
                resource,
                namespace,
                name,
                body,
                manager=manager,
                force=force,
                subresource=subresource,
            )

    async def patch(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object | Sequence[ports.Object],
        *,
        content_type: str = ports.MERGE_PATCH,
        subresource: str = "",
        manager: str = "",
    ) -> ports.Object:
        async with self._pace:
            return await self._cluster.patch(
                resource,
                namespace,
                name,
                body,
                content_type=content_type,
                subresource=subresource,
                manager=manager,
            )

    async def replace(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object,
        *,
        subresource: str = "",
    ) -> ports.Object:
        async with self._pace:
            return await self._cluster.replace(
                resource, namespace, name, body, subresource=subresource
            )

    async def delete(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        async with self._pace:
            await self._cluster.delete(
                resource,
                namespace,
                name,
                grace_s=grace_s,
                uid=uid,
                resource_version=resource_version,
            )

    def _check(self) -> None:
        if not self._may_write():
            raise errors.Unavailable("this emulator's own Lease is not renewed: nothing is written")
