"""An API server in memory: ports.Cluster for tests and simulations.

It meets the contract suite of the real one: resource versions, uids, generations, conflicts,
server-side apply with owners of fields, /status and /scale, deletion with grace and finalizers,
removal of what a deleted object owned. It validates nothing and knows no namespaces.
"""

import copy
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelserve import errors, ports
from modelserve.api import timestamps
from modelserve.testing import field_owners, objects, patches, watches

_Key = tuple[str, str, str]
_Owner = tuple[str, str, str]  # manager, operation, subresource

_USER_AGENT = "modelserve"


@dataclass(slots=True)
class _Record:
    """An object and who owns its fields."""

    resource: ports.Resource
    body: dict[str, Any]
    owners: dict[_Owner, field_owners.Fields] = field(default_factory=dict)


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
        self._wall_s = wall_s
        self._records: dict[_Key, _Record] = {}
        self._version = 0
        self._n_objects = 0
        self._watches: list[watches.Watch] = []

    async def get(self, resource: ports.Resource, namespace: str | None, name: str) -> ports.Object:
        self._note("get", resource, name)
        return copy.deepcopy(self._find(resource, namespace, name).body)

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
        return self._selected(watch), str(self._version)

    async def watch(
        self,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[ports.WatchEvent]:
        watch = watches.Watch(resource, namespace, label_selector, field_selector)
        events = [ports.WatchEvent(ports.Change.ADDED, item) for item in self._selected(watch)]
        synced = {"metadata": {"resourceVersion": str(self._version)}}
        self._watches.append(watch)
        try:
            for event in [*events, ports.WatchEvent(ports.Change.SYNCED, synced)]:
                yield event
            while True:
                yield await watch.queue.get()
        finally:
            self._watches.remove(watch)

    async def create(
        self, resource: ports.Resource, namespace: str | None, body: ports.Object
    ) -> ports.Object:
        metadata = body.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{self._n_objects:05x}"
        self._note("create", resource, name)
        if resource.kind == "Eviction":
            wanted = (body.get("deleteOptions") or {}).get("preconditions") or {}
            await self.delete(ports.PODS, namespace, name, uid=wanted.get("uid", ""))
            return body
        if _key(resource, namespace, name) in self._records:
            raise errors.Conflict(
                f'{resource.plural} "{name}" already exists', 409, "AlreadyExists"
            )
        record = self._new(resource, namespace, name)
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
        record = self._records.get(_key(resource, namespace, name))
        if record is None:
            if subresource:
                raise self._not_found(resource, name)
            record = self._new(resource, namespace, name)
        objects.check_preconditions(record.body, body)
        applied = objects.within(resource, body, subresource)
        me = (manager, "Apply", subresource)
        wanted = field_owners.fields_of(applied)
        self._take(record, applied, wanted, me, force=force)
        merged = copy.deepcopy(field_owners.merge(record.body, applied))
        kept = frozenset[field_owners.Path]().union(
            *(fields for owner, fields in record.owners.items() if owner != me)
        )
        dropped = record.owners.get(me, frozenset()) - wanted
        field_owners.remove(merged, dropped, kept | wanted)
        record.owners[me] = wanted
        self._store(record, merged)
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
        record = self._find(resource, namespace, name)
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
        record = self._find(resource, namespace, name)
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
        record = self._find(resource, namespace, name)
        wanted = {"uid": uid, "resourceVersion": resource_version}
        objects.check_preconditions(record.body, {"metadata": wanted})
        self._delete(record, grace_s)

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

    def _find(self, resource: ports.Resource, namespace: str | None, name: str) -> _Record:
        record = self._records.get(_key(resource, namespace, name))
        if record is None:
            raise self._not_found(resource, name)
        return record

    def _not_found(self, resource: ports.Resource, name: str) -> errors.NotFound:
        return errors.NotFound(f'{resource.plural} "{name}" not found', 404, "NotFound")

    def _selected(self, watch: watches.Watch) -> Sequence[ports.Object]:
        records = (r for _, r in sorted(self._records.items()))
        return [copy.deepcopy(r.body) for r in records if watch.selects(r.resource, r.body)]

    def _new(self, resource: ports.Resource, namespace: str | None, name: str) -> _Record:
        self._n_objects += 1
        metadata = {
            "name": name,
            **({"namespace": namespace} if resource.namespaced and namespace else {}),
            "uid": f"{self._n_objects:08x}-0000-4000-8000-000000000000",
            "creationTimestamp": timestamps.format_time(self._wall_s()),
        }
        return _Record(
            resource,
            {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata},
        )

    def _take(
        self,
        record: _Record,
        applied: Mapping[str, Any],
        wanted: field_owners.Fields,
        me: _Owner,
        *,
        force: bool,
    ) -> None:
        """Refuse what others own with another value, or take it from them by force."""
        for other, fields in list(record.owners.items()):
            if other == me:
                continue
            found = field_owners.conflicts(record.body, applied, wanted, {other[0]: fields})
            if found and not force:
                where = ", ".join(field_owners.describe(path) for _, path in found)
                raise errors.Conflict(
                    f"Apply failed with {len(found)} conflict{'s' * (len(found) > 1)}: "
                    f'conflict with "{other[0]}": {where}',
                    409,
                    "Conflict",
                )
            record.owners[other] = fields - {path for _, path in found}

    def _update(
        self, record: _Record, wanted: Mapping[str, Any], subresource: str, manager: str
    ) -> ports.Object:
        new = objects.confined(record.resource, record.body, wanted, subresource)
        objects.set_defaults(record.resource, new)
        set_, gone = field_owners.changed(record.body, new)
        for owner, fields in list(record.owners.items()):
            record.owners[owner] = fields - set_ - gone
        me = (manager, "Update", subresource)
        record.owners[me] = record.owners.get(me, frozenset()) | set_
        self._store(record, new)
        return self._answer(record, subresource)

    def _store(self, record: _Record, new: dict[str, Any]) -> None:
        """Take in the new body, if anything is new, and tell the watches."""
        objects.set_defaults(record.resource, new)
        record.owners = {owner: fields for owner, fields in record.owners.items() if fields}
        metadata = dict(new["metadata"])
        metadata["managedFields"] = objects.managed_fields(record.resource, record.owners)
        new["metadata"] = metadata
        old, key = record.body, _key_of(record.resource, new)
        is_new = key not in self._records
        if not is_new and objects.content(old) == objects.content(new):
            return
        if record.resource in objects.WITH_GENERATION:
            same = not is_new and objects.specification(old) == objects.specification(new)
            metadata["generation"] = old["metadata"].get("generation", 0) + (not same)
        record.body = new
        self._records[key] = record
        self._tell(record, None if is_new else old)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._finish(record)

    def _finish(self, record: _Record) -> None:
        if not record.body["metadata"].get("deletionGracePeriodSeconds"):
            self._remove(record)

    def _delete(self, record: _Record, grace_s: int | None) -> None:
        metadata = record.body["metadata"]
        grace = objects.grace_s(record.resource, record.body, grace_s)
        if not grace and not metadata.get("finalizers"):
            self._remove(record)
            return
        new = copy.deepcopy(record.body)
        new["metadata"].setdefault("deletionTimestamp", timestamps.format_time(self._wall_s()))
        before = metadata.get("deletionGracePeriodSeconds", grace)
        new["metadata"]["deletionGracePeriodSeconds"] = min(grace, before)
        self._store(record, new)

    def _remove(self, record: _Record) -> None:
        self._records.pop(_key_of(record.resource, record.body), None)
        old, record.body = record.body, copy.deepcopy(record.body)
        self._tell(record, old, gone=True)
        self._collect(old["metadata"]["uid"])

    def _collect(self, uid: str) -> None:
        """Delete what only the deleted object owned."""
        for record in list(self._records.values()):
            owners = record.body["metadata"].get("ownerReferences") or ()
            alive = {r.body["metadata"]["uid"] for r in self._records.values()}
            if any(o["uid"] == uid for o in owners) and not any(o["uid"] in alive for o in owners):
                self._delete(record, None)

    def _tell(self, record: _Record, old: ports.Object | None, *, gone: bool = False) -> None:
        self._version += 1
        record.body["metadata"]["resourceVersion"] = str(self._version)
        for watch in self._watches:
            watch.tell(record.resource, old, record.body, gone=gone)

    def _answer(self, record: _Record, subresource: str) -> ports.Object:
        return (
            objects.to_scale(record.body) if subresource == "scale" else copy.deepcopy(record.body)
        )


def _key(resource: ports.Resource, namespace: str | None, name: str) -> _Key:
    kind = f"{resource.group}/{resource.plural}"
    return kind, (namespace or "") if resource.namespaced else "", name


def _key_of(resource: ports.Resource, body: ports.Object) -> _Key:
    return _key(resource, body["metadata"].get("namespace"), body["metadata"]["name"])
