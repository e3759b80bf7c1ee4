"""What containers and volumes of a pod are made of, and what a kubelet says where that is missing.

ConfigMaps and Secrets in the environment; those, also projected, and claims as volumes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servelab.node.pods import podspec
from servelab.node.rules import wording

CLAIM = "PersistentVolumeClaim"
# What a claim that can be mounted has for a key.
BOUND = "Bound"
# Kubernetes puts it into every namespace, and every pod mounts it: it is not looked for.
PUBLISHED = "kube-root-ca.crt"
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_SOURCES = (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"))


@dataclass(frozen=True, slots=True)
class Reference:
    """One use of an object; without ``keys``, all of it is taken."""

    kind: str
    name: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume that some container mounts, and what it is made of."""

    name: str
    references: tuple[Reference, ...]
    projected: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """What a kubelet says: of each container's environment, of volumes, and of their claims.

    ``devices`` is of resource claims (DRA), which are looked at before the sandbox is made.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[str] = ()
    claims: str = ""
    devices: str = ""

    def __bool__(self) -> bool:
        told = (*self.environment.values(), *self.volumes, self.claims, self.devices)
        return any(told)


NOTHING = Missing()
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
                name, wanted = reference.get("name", ""), reference.get("key", "")
                found.append(Reference(kind, name, (wanted,)))
    return found


def volumes(pod: podspec.Pod) -> Sequence[Volume]:
    """Volumes made of objects that may be missing; a kubelet sets up no others than are mounted."""
    mounted = {
        mount["name"] for spec in pod.containers for mount in spec.raw.get("volumeMounts") or ()
    }
    found = []
    for volume in pod.raw["spec"].get("volumes") or ():
        if volume["name"] not in mounted:
            continue
        parts = (volume.get("projected") or {}).get("sources")
        made = tuple(_made_of([volume] if parts is None else parts))
        if made:
            found.append(Volume(volume["name"], made, parts is not None))
    return found


def _made_of(sources: Iterable[Mapping[str, Any]]) -> Iterable[Reference]:
    for source in sources:
        for key, kind, name in _SOURCES:
            said = source.get(key) or {"optional": True}
            given = str(said.get(name) or said.get("name") or "")
            keys = tuple(item["key"] for item in said.get("items") or ())
            if not said.get("optional") and (given, {*keys, "ca.crt"}) != (PUBLISHED, {"ca.crt"}):
                yield Reference(kind, given, keys)
        claim = source.get("persistentVolumeClaim")
        if claim:
            yield Reference(CLAIM, claim["claimName"], (BOUND,))


def fault(namespace: str, wanted: Sequence[Reference], found: Found) -> str:
    """What a kubelet says of the first that an environment misses; empty if none is."""
    for reference in wanted:
        keys = found.get((reference.kind, reference.name))
        if keys is None:
            return wording.object_missing(reference.kind, reference.name)
        for key in reference.keys:
            if key not in keys:
                where = f"{reference.kind} {namespace}/{reference.name}"
                return f"couldn't find key {key} in {where}"
    return ""


def path_fault(spec: podspec.Container, found: Found) -> str:
    """What a kubelet says of a ``subPathExpr`` with a variable that nobody gives; or nothing."""
    given = {variable["name"] for variable in spec.raw.get("env") or ()}
    for source in spec.raw.get("envFrom") or ():
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            keys = found.get((kind, (source.get(key) or {}).get("name", "")), frozenset())
            given |= {f"{source.get('prefix', '')}{each}" for each in keys}
    for mount in spec.raw.get("volumeMounts") or ():
        for match in _VARIABLE.finditer(mount.get("subPathExpr") or ""):
            if match[1] and match[1] not in given:
                return f"missing value for {match[1]}"
    return ""


def mount_faults(namespace: str, wanted: Sequence[Volume], found: Found) -> Sequence[str]:
    """The events about volumes that cannot be set up, each told again and again by itself."""
    told = []
    for volume in wanted:
        files = [each for each in volume.references if each.kind != CLAIM]
        why = [text for each in files if (text := _files_fault(each, found))]
        if why:
            text = wording.bracketed(why, ", ") if volume.projected and len(why) > 1 else why[0]
            told.append(wording.mount_failed(volume.name, text))
    return told


def claim_fault(namespace: str, wanted: Sequence[Volume], found: Found) -> str:
    """The event about volumes by claims that are not there or not bound; empty if all are."""
    names, why, unmounted = [], [], []
    for volume in wanted:
        if any(_files_fault(each, found) for each in volume.references if each.kind != CLAIM):
            unmounted.append(volume.name)
        for each in volume.references:
            keys = found.get((each.kind, each.name))
            if each.kind == CLAIM and keys is None:
                why.append(wording.claim_missing(namespace, each.name))
            elif each.kind == CLAIM and BOUND not in (keys or ()):
                why.append(wording.claim_unbound(namespace, each.name))
            else:
                continue
            names.append(volume.name)
            unmounted.append(volume.name)
    return wording.not_processed(unmounted, names, why) if names else ""


def _files_fault(reference: Reference, found: Found) -> str:
    keys = found.get((reference.kind, reference.name))
    if keys is None:
        return wording.object_missing(reference.kind, reference.name)
    lacking = next((key for key in reference.keys if key not in keys), None)
    return "" if lacking is None else wording.key_missing(reference.kind, lacking)
