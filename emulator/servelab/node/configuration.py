"""ConfigMaps and Secrets that containers take their environment from, and what is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servelab.node import podspec


@dataclass(frozen=True, slots=True)
class Reference:
    """One use of a ConfigMap or Secret; ``key`` is empty where all of it is taken."""

    kind: str
    name: str
    key: str = ""


# Keys by kind and name of what exists.
Found = Mapping[tuple[str, str], frozenset[str]]


def references(spec: podspec.Container) -> Sequence[Reference]:
    """What the container cannot be created without, in the order a kubelet looks."""
    found = []
    for source in spec.raw.get("envFrom") or ():
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            reference = source.get(key)
            if reference and not reference.get("optional"):
                found.append(Reference(kind, reference.get("name", "")))
    for variable in spec.raw.get("env") or ():
        value = variable.get("valueFrom") or {}
        for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            reference = value.get(key)
            if reference and not reference.get("optional"):
                found.append(Reference(kind, reference.get("name", ""), reference.get("key", "")))
    return found


def volumes(pod: podspec.Pod) -> Sequence[tuple[str, Reference]]:
    """Volumes made of a ConfigMap or Secret, by name."""
    found = []
    for volume in pod.raw["spec"].get("volumes") or ():
        for key, kind, name in (
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
        ):
            source = volume.get(key)
            if source and not source.get("optional"):
                found.append((volume["name"], Reference(kind, source.get(name, ""))))
    return found


def fault(namespace: str, wanted: Sequence[Reference], found: Found) -> str:
    """What a kubelet says of the first that is missing; empty if none is."""
    for reference in wanted:
        keys = found.get((reference.kind, reference.name))
        if keys is None:
            return f'{reference.kind.lower()} "{reference.name}" not found'
        if reference.key and reference.key not in keys:
            where = f"{reference.kind} {namespace}/{reference.name}"
            return f"couldn't find key {reference.key} in {where}"
    return ""
