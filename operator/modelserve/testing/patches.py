"""Patches and selectors of the Kubernetes API on plain dictionaries."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from modelserve import errors, ports
from modelserve.testing import field_owners

_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")


def merge_patch(live: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = dict(live) if isinstance(live, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_patch(live: Any, patch: Any, field: str = "") -> Any:
    """A merge patch that merges keyed lists by their keys; no ``$`` directives."""
    if isinstance(patch, Mapping):
        merged = dict(live) if isinstance(live, Mapping) else {}
        for key, value in patch.items():
            if key.startswith("$"):
                raise errors.Invalid(f"{key} of a strategic merge patch is not known here", 422)
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = strategic_patch(merged.get(key), value, key)
        return merged
    keys = field_owners.list_keys(field, patch) if isinstance(patch, list) else ()
    if not keys or not isinstance(live, list):
        return copy.deepcopy(patch)
    items = {field_owners.item_key(item, keys): item for item in live}
    for item in patch:
        key = field_owners.item_key(item, keys)
        items[key] = strategic_patch(items.get(key), item)
    return list(items.values())


def json_patch(live: Any, operations: Sequence[ports.Object]) -> Any:
    """RFC 6902: add, replace, remove, test. Raises Invalid as the API server does."""
    document = copy.deepcopy(live)
    for operation in operations:
        _operate(document, operation)
    return document


def matches(item: ports.Object, label_selector: str, field_selector: str) -> bool:
    """Whether an object is selected."""
    labels = item["metadata"].get("labels") or {}
    terms = re.findall(r"[^,(]+\([^)]*\)|[^,]+", label_selector)
    fields = [term for term in field_selector.split(",") if term]
    return all(_label(labels, term.strip()) for term in terms) and all(
        _field(item, term.strip()) for term in fields
    )


def _operate(document: Any, operation: ports.Object) -> None:
    *above, last = [
        part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
    ]
    try:
        for part in above:
            document = document[int(part) if isinstance(document, list) else part]
        at = int(last) if isinstance(document, list) and last != "-" else last
        match operation["op"]:
            case "add" if isinstance(document, list):
                document.insert(len(document) if last == "-" else int(last), operation["value"])
            case "add":
                document[at] = operation["value"]
            case "replace":
                _ = document[at]
                document[at] = operation["value"]
            case "remove":
                del document[at]
            case "test" if document[at] == operation["value"]:
                pass
            case other:
                raise errors.Invalid(f"the server rejected our request: {other} failed", 422)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise errors.Invalid(f"the JSON patch does not fit: {operation['path']}", 422) from error


def _label(labels: Mapping[str, str], term: str) -> bool:
    if found := _SET.match(term):
        within = labels.get(found[1]) in [v.strip() for v in found[3].split(",")]
        return within == (found[2] == "in")
    if "!=" in term:
        key, _, value = term.partition("!=")
        return labels.get(key) != value
    if "=" in term:
        key, _, value = term.replace("==", "=").partition("=")
        return labels.get(key) == value
    return term[1:] not in labels if term.startswith("!") else term in labels


def _field(item: ports.Object, term: str) -> bool:
    differs = "!=" in term
    key, _, wanted = term.partition("!=" if differs else "=")
    value = field_owners.get(item, tuple(f"f:{part}" for part in key.split(".")))
    return (str("" if value is field_owners.MISSING else value) == wanted.lstrip("=")) != differs
