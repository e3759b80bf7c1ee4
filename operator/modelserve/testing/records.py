"""What an API server in memory keeps: objects, who owns their fields, and the watches on them."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelserve import errors, ports
from modelserve.api import timestamps
from modelserve.testing import field_owners, objects, watches

Owner = tuple[str, str, str]  # manager, operation, subresource
_Key = tuple[str, str, str]


@dataclass(slots=True)
class Record:
    """An object and who owns its fields."""

    resource: ports.Resource
    body: dict[str, Any]
    owners: dict[Owner, field_owners.Fields] = field(default_factory=dict)


class Records:
    """All objects. Each change is a version of its own, and told to the ``watches``."""

    def __init__(self, wall_s: Callable[[], float]) -> None:
        self.version = 0
        self.made = 0  # objects, ever
        self.watches: list[watches.Watch] = []
        self._wall_s = wall_s
        self._records: dict[_Key, Record] = {}

    def known(self, resource: ports.Resource, namespace: str | None, name: str) -> Record | None:
        """The object of that name, if there is one."""
        return self._records.get(_key(resource, namespace, name))

    def find(self, resource: ports.Resource, namespace: str | None, name: str) -> Record:
        """The same. Raises NotFound."""
        record = self.known(resource, namespace, name)
        if record is None:
            raise errors.NotFound(f'{resource.plural} "{name}" not found', 404, "NotFound")
        return record

    def selected(self, watch: watches.Watch) -> Sequence[ports.Object]:
        """Copies of those that such a watch is told of, by name."""
        records = (r for _, r in sorted(self._records.items()))
        return [copy.deepcopy(r.body) for r in records if watch.selects(r.resource, r.body)]

    def new(self, resource: ports.Resource, namespace: str | None, name: str) -> Record:
        """One that is not stored yet, with the metadata that a server gives."""
        self.made += 1
        metadata = {
            "name": name,
            **({"namespace": namespace} if resource.namespaced and namespace else {}),
            "uid": f"{self.made:08x}-0000-4000-8000-000000000000",
            "creationTimestamp": timestamps.format_time(self._wall_s()),
        }
        return Record(
            resource,
            {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata},
        )

    def take(
        self,
        record: Record,
        applied: Mapping[str, Any],
        wanted: field_owners.Fields,
        me: Owner,
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

    def update(
        self, record: Record, wanted: Mapping[str, Any], subresource: str, manager: str
    ) -> None:
        """Take in the new body, as far as the subresource may; ``manager`` owns what is new."""
        new = objects.confined(record.resource, record.body, wanted, subresource)
        objects.set_defaults(record.resource, new)
        set_, gone = field_owners.changed(record.body, new)
        for owner, fields in list(record.owners.items()):
            record.owners[owner] = fields - set_ - gone
        me = (manager, "Update", subresource)
        record.owners[me] = record.owners.get(me, frozenset()) | set_
        self.store(record, new)

    def store(self, record: Record, new: dict[str, Any]) -> None:
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

    def _finish(self, record: Record) -> None:
        if not record.body["metadata"].get("deletionGracePeriodSeconds"):
            self._remove(record)

    def delete(self, record: Record, grace_s: int | None) -> None:
        """Remove it, or mark it as long as it has a grace or finalizers."""
        metadata = record.body["metadata"]
        grace = objects.grace_s(record.resource, record.body, grace_s)
        if not grace and not metadata.get("finalizers"):
            self._remove(record)
            return
        new = copy.deepcopy(record.body)
        new["metadata"].setdefault("deletionTimestamp", timestamps.format_time(self._wall_s()))
        before = metadata.get("deletionGracePeriodSeconds", grace)
        new["metadata"]["deletionGracePeriodSeconds"] = min(grace, before)
        self.store(record, new)

    def _remove(self, record: Record) -> None:
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
                self.delete(record, None)

    def _tell(self, record: Record, old: ports.Object | None, *, gone: bool = False) -> None:
        self.version += 1
        record.body["metadata"]["resourceVersion"] = str(self.version)
        for watch in self.watches:
            watch.tell(record.resource, old, record.body, gone=gone)


def _key(resource: ports.Resource, namespace: str | None, name: str) -> _Key:
    kind = f"{resource.group}/{resource.plural}"
    return kind, (namespace or "") if resource.namespaced else "", name


def _key_of(resource: ports.Resource, body: ports.Object) -> _Key:
    return _key(resource, body["metadata"].get("namespace"), body["metadata"]["name"])
