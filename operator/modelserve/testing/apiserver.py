"""An API server in memory: ports.Cluster for tests and simulations.

It meets the contract suite of the real one: resource versions, uids, generations, conflicts,
server-side apply with owners of fields, /status and /scale, deletion with grace and finalizers,
removal of what a deleted object owned. It validates nothing and knows no namespaces.
"""

import copy
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelserve import errors, ports
from modelserve.testing import field_owners, objects, patches, records, watches

_USER_AGENT = "modelserve"


@dataclass(frozen=True, slots=True)
class Call:
    """One call, for tests that count them."""

    verb: str
    resource: ports.Resource
    name: str
    subresource: str = ""
    manager: str = ""


class MemoryCluster:
    """ports.Cluster in memory.

    ``calls`` lists what was asked; ``before_call`` may raise, to make a call fail before it acts.
    """

    def __init__(self, wall_s: Callable[[], float] = lambda: 1.7e9) -> None:
        self.calls: list[Call] = []
        self.before_call: Callable[[Call], None] = lambda call: None
        self._records = records.Records(wall_s)

    async def get(self, resource: ports.Resource, namespace: str | None, name: str) -> ports.Object:
        self._note("get", resource, name)
        return copy.deepcopy(self._records.find(resource, namespace, name).body)

    async def list(
        self,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[Sequence[ports.Object], str]:
        self._note("list", resource, "")
        watch = watches.Watch(resource, namespace, label_selector, field_selector)
        return self._records.selected(watch), str(self._records.version)

    async def watch(
        self,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[ports.WatchEvent]:
        watch = watches.Watch(resource, namespace, label_selector, field_selector)
        events = [
            ports.WatchEvent(ports.Change.ADDED, item) for item in self._records.selected(watch)
        ]
        synced = {"metadata": {"resourceVersion": str(self._records.version)}}
        self._records.watches.append(watch)
        try:
            for event in [*events, ports.WatchEvent(ports.Change.SYNCED, synced)]:
                yield event
            while True:
                yield await watch.queue.get()
        finally:
            self._records.watches.remove(watch)

    async def create(
        self, resource: ports.Resource, namespace: str | None, body: ports.Object
    ) -> ports.Object:
        metadata = body.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{self._records.made:05x}"
        self._note("create", resource, name)
        if resource.kind == "Eviction":
            wanted = (body.get("deleteOptions") or {}).get("preconditions") or {}
            await self.delete(ports.PODS, namespace, name, uid=wanted.get("uid", ""))
            return body
        if self._records.known(resource, namespace, name) is not None:
            raise errors.Conflict(
                f'{resource.plural} "{name}" already exists', 409, "AlreadyExists"
            )
        record = self._records.new(resource, namespace, name)
        kept = resource in objects.KEEPS_STATUS_AT_CREATION or resource not in objects.WITH_STATUS
        wanted = copy.deepcopy({k: v for k, v in body.items() if k != "status" or kept})
        wanted["metadata"] = {**wanted.get("metadata", {}), **record.body["metadata"]}
        return self._update(record, wanted, "", _USER_AGENT)

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
        self._note("apply", resource, name, subresource, manager)
        if subresource:
            self._records.find(resource, namespace, name)
        record = self._records.known(resource, namespace, name)
        if record is None:
            record = self._records.new(resource, namespace, name)
        objects.check_preconditions(record.body, body)
        applied = objects.within(resource, body, subresource)
        me = (manager, "Apply", subresource)
        wanted = field_owners.fields_of(applied)
        self._records.take(record, applied, wanted, me, force=force)
        merged = copy.deepcopy(field_owners.merge(record.body, applied))
        kept = frozenset[field_owners.Path]().union(
            *(fields for owner, fields in record.owners.items() if owner != me)
        )
        dropped = record.owners.get(me, frozenset()) - wanted
        field_owners.remove(merged, dropped, kept | wanted)
        record.owners[me] = wanted
        self._records.store(record, merged)
        return self._answer(record, subresource)

    async def patch(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object | Sequence[ports.Object],
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
        manager: str = "",
    ) -> ports.Object:
        self._note("patch", resource, name, subresource, manager)
        record = self._records.find(resource, namespace, name)
        if isinstance(body, Mapping):
            objects.check_preconditions(record.body, body)
            merge = patches.strategic_patch if "strategic" in content_type else patches.merge_patch
            wanted = merge(record.body, body)
        else:
            wanted = patches.json_patch(record.body, body)
        return self._update(record, wanted, subresource, manager or _USER_AGENT)

    async def replace(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object,
        *,
        subresource: str = "",
    ) -> ports.Object:
        self._note("replace", resource, name, subresource)
        record = self._records.find(resource, namespace, name)
        objects.check_preconditions(record.body, body)
        wanted = copy.deepcopy(dict(body))
        return self._update(record, wanted, subresource, _USER_AGENT)

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
        self._note("delete", resource, name)
        record = self._records.find(resource, namespace, name)
        wanted = {"uid": uid, "resourceVersion": resource_version}
        objects.check_preconditions(record.body, {"metadata": wanted})
        self._records.delete(record, grace_s)

    def _note(
        self,
        verb: str,
        resource: ports.Resource,
        name: str,
        subresource: str = "",
        manager: str = "",
    ) -> None:
        call = Call(verb, resource, name, subresource, manager)
        self.before_call(call)
        self.calls.append(call)

    def _update(
        self, record: records.Record, wanted: Mapping[str, Any], subresource: str, manager: str
    ) -> ports.Object:
        self._records.update(record, wanted, subresource, manager)
        return self._answer(record, subresource)

    def _answer(self, record: records.Record, subresource: str) -> ports.Object:
        return (
            objects.to_scale(record.body) if subresource == "scale" else copy.deepcopy(record.body)
        )
