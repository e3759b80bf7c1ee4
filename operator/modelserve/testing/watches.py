"""The watches of the in-memory API server: what each selects, and what it has not read yet."""

import asyncio
import copy
from dataclasses import dataclass, field

from modelserve import ports
from modelserve.testing import patches


@dataclass(eq=False, slots=True)
class Watch:
    """One watcher: what it selects and what it has not read yet."""

    resource: ports.Resource
    namespace: str | None
    label_selector: str
    field_selector: str
    queue: "asyncio.Queue[ports.WatchEvent]" = field(default_factory=asyncio.Queue)

    def selects(self, resource: ports.Resource, body: ports.Object) -> bool:
        within = not self.namespace or body["metadata"].get("namespace") == self.namespace
        return (
            resource == self.resource
            and within
            and patches.matches(body, self.label_selector, self.field_selector)
        )

    def tell(
        self,
        resource: ports.Resource,
        old: ports.Object | None,
        new: ports.Object,
        *,
        gone: bool,
    ) -> None:
        before = old is not None and self.selects(resource, old)
        after = not gone and self.selects(resource, new)
        if before or after:
            change = (
                (ports.Change.MODIFIED if before else ports.Change.ADDED)
                if after
                else ports.Change.DELETED
            )
            self.queue.put_nowait(ports.WatchEvent(change, copy.deepcopy(new)))
