"""Who owns which field: server-side apply on plain dictionaries, as far as this project needs it.

Paths are tuples of the elements of Kubernetes' own FieldsV1: ``f:name`` a key of a map,
``k:{"name":"engine"}`` an item of a keyed list, ``.`` that item itself. Lists without known keys
and the maps of ``_ATOMIC`` are owned as a whole. No schema: keys of lists go by the field's name.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]
Fields = frozenset[Path]

_ITEM = "."
_LIST_KEYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "conditions": (("type",),),
    "containers": (("name",),),
    "initContainers": (("name",),),
    "env": (("name",),),
    "imagePullSecrets": (("name",),),
    "ownerReferences": (("uid",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "volumeMounts": (("mountPath",),),
    "volumes": (("name",),),
}
_ATOMIC = ("selector", "nodeSelector")
_KEY_DEFAULTS = {"protocol": "TCP"}
_SERVERS_OWN = ("apiVersion", "kind")
_SERVERS_OWN_METADATA = (
    *("name", "namespace", "generateName", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"),
)
MISSING = object()


def fields_of(body: Mapping[str, Any]) -> Fields:
    """Every path of an object that somebody can own."""
    metadata = {
        k: v for k, v in (body.get("metadata") or {}).items() if k not in _SERVERS_OWN_METADATA
    }
    rest = {k: v for k, v in body.items() if k not in (*_SERVERS_OWN, "metadata")}
    return frozenset(_walk({**rest, **({"metadata": metadata} if metadata else {})}, ()))


def list_keys(field: str, items: Sequence[Any]) -> tuple[str, ...]:
    """The keys that tell the items of this list apart; empty for an atomic list."""
    for keys in _LIST_KEYS.get(field, ()):
        if items and all(isinstance(i, Mapping) and keys[0] in i for i in items):
            return keys
    return ()


def item_key(item: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The path element of an item."""
    found = {k: item.get(k, _KEY_DEFAULTS.get(k)) for k in keys}
    return "k:" + json.dumps(found, sort_keys=True, separators=(",", ":"))


def get(body: Any, path: Path) -> Any:
    """The value at a path, or MISSING; of an item itself only that it is there."""
    for element in path:
        if element == _ITEM:
            return True
        body = _step(body, element)
        if body is MISSING:
            return MISSING
    return body


def merge(live: Any, applied: Any, field: str = "") -> Any:
    """``live`` with everything that ``applied`` says; a null says nothing."""
    if isinstance(live, Mapping) and isinstance(applied, Mapping) and field not in _ATOMIC:
        merged = dict(live)
        for key, value in applied.items():
            if value is not None:
                merged[key] = merge(live.get(key), value, key)
        return merged
    keys = list_keys(field, applied) if isinstance(applied, list) else ()
    if not keys or not isinstance(live, list):
        return copy.deepcopy(applied)
    items = {item_key(item, keys): item for item in live}
    for item in applied:
        key = item_key(item, keys)
        items[key] = merge(items.get(key), item)
    return list(items.values())


def remove(body: dict[str, Any], paths: Iterable[Path], kept: Fields) -> None:
    """Take out these paths, unless somebody else owns them or something below them."""
    # Whole items before their fields: without its key an item cannot be found again.
    for whole in sorted((p[:-1] if p[-1] == _ITEM else p for p in paths), key=len):
        if any(other[: len(whole)] == whole for other in kept):
            continue
        _remove(body, whole)


def conflicts(
    live: Mapping[str, Any],
    applied: Mapping[str, Any],
    wanted: Fields,
    others: Mapping[str, Fields],
) -> list[tuple[str, Path]]:
    """(manager, path) of each wanted field that another manager owns with another value."""
    return [
        (manager, path)
        for manager, owned in sorted(others.items())
        for path in sorted(owned & wanted)
        if get(live, path) != get(applied, path)
    ]


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Fields, Fields]:
    """The paths that an update set, and those it took away."""
    before, after = fields_of(old), fields_of(new)
    return frozenset(p for p in after if get(old, p) != get(new, p)), before - after


def to_fields_v1(fields: Fields) -> dict[str, Any]:
    """As in ``metadata.managedFields``."""
    tree: dict[str, Any] = {}
    for path in sorted(fields):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
    return tree


def describe(path: Path) -> str:
    """As the API server writes it: ``.spec.containers[name="engine"].image``."""
    return "".join(_describe(element) for element in path if element != _ITEM)


def _describe(element: str) -> str:
    if element.startswith("f:"):
        return f".{element[2:]}"
    keys = json.loads(element[2:])
    return "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in keys.items()) + "]"


def _walk(value: Any, path: Path) -> Iterator[Path]:
    field = path[-1][2:] if path else ""
    if isinstance(value, Mapping) and value and field not in _ATOMIC:
        for key, child in value.items():
            if child is not None:
                yield from _walk(child, (*path, f"f:{key}"))
    elif isinstance(value, list) and (keys := list_keys(field, value)):
        for item in value:
            inside = (*path, item_key(item, keys))
            yield (*inside, _ITEM)
            for key, child in item.items():
                yield from _walk(child, (*inside, f"f:{key}"))
    elif path:
        yield path


def _step(body: Any, element: str) -> Any:
    if element.startswith("f:"):
        return body.get(element[2:], MISSING) if isinstance(body, Mapping) else MISSING
    if not isinstance(body, list):
        return MISSING
    keys = tuple(json.loads(element[2:]))
    return next((i for i in body if item_key(i, keys) == element), MISSING)


def _remove(body: Any, path: Path) -> None:
    parent, element = get(body, path[:-1]), path[-1]
    value = MISSING if parent is MISSING else _step(parent, element)
    if value is MISSING:
        return
    if element.startswith("f:"):
        del parent[element[2:]]
    else:
        parent.remove(value)
    # An empty map that nobody asked for goes with its last field.
    if not parent and len(path) > 1 and path[:-1] != ("f:metadata",):
        _remove(body, path[:-1])
