"""Conditions of Kubernetes objects: pods, nodes and ours have them in the same form."""

from collections.abc import Mapping
from typing import Any


def find(item: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of that type in the object's status; empty if it has none."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), {})


def is_true(item: Mapping[str, Any], kind: str) -> bool:
    """Whether the object has the condition and it is True."""
    return find(item, kind).get("status") == "True"
