"""The key of a ModelServe, and which one an object belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from modelserve.api import names


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A ModelServe."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, modelserve: Mapping[str, Any]) -> Self:
        """The key of the object itself."""
        return cls(modelserve["metadata"]["namespace"], modelserve["metadata"]["name"])


def served_name(modelserve: Mapping[str, Any]) -> str:
    """What clients send as ``model`` to reach it."""
    model = (modelserve.get("spec") or {}).get("model") or {}
    return str(model.get("servedName") or modelserve["metadata"]["name"])


def owner(child: Mapping[str, Any]) -> Key | None:
    """The ModelServe that the labels of a Deployment or an engine pod name; None if none."""
    metadata = child["metadata"]
    name = (metadata.get("labels") or {}).get(names.LABEL_MODELSERVE)
    return Key(metadata.get("namespace", ""), name) if name else None
