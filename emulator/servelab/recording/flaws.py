"""What a pod by chance lacks, or may not have: images, commands, configuration, volumes, rights."""

import copy
import random
from dataclasses import dataclass, field
from typing import Any

from servelab.recording import programs

Raw = dict[str, Any]

_THERE = "kube-root-ca.crt"  # the one ConfigMap that every namespace has, with the key ca.crt
_NOWHERE = "/bin/nothing"
_CANNOT_START = f'exec: "{_NOWHERE}": stat {_NOWHERE}: no such file or directory'


@dataclass(slots=True)
class Flaw:
    """What it changes: of a container, of the pod's volumes, and of the container's words."""

    container: Raw = field(default_factory=dict)
    volume: Raw = field(default_factory=dict)
    words: programs.Words = field(default_factory=dict)


def flawed(
    rng: random.Random, raw: Raw, program: programs.Program
) -> tuple[Raw, list[Raw], programs.Words]:
    """The container, volumes of the pod, and words, with something amiss, or only unusual."""
    draws = (_image, _command, _environment, _environment, _volume, _volume, _rights, _rights)
    found = rng.choice(draws)(rng, raw["name"], program)
    mounts = [*raw.get("volumeMounts", ()), *found.container.pop("volumeMounts", ())]
    made = {**raw, **found.container, **({"volumeMounts": mounts} if mounts else {})}
    if "command" in made:
        del made["sh"]
    return made, [found.volume] if found.volume else [], {**program.words, **found.words}


def _image(rng: random.Random, name: str, program: programs.Program) -> Flaw:
    nowhere = ("127.0.0.1:5000/nothing:v1", "Wrong/Name:v1", "127.0.0.1:5000/engine:a:b")
    if rng.random() < 0.5:
        return Flaw({"image": rng.choice(nowhere)})
    if rng.random() < 0.3:
        return Flaw({"image": "docker.io/library/nope:1", "imagePullPolicy": "Never"})
    image = rng.choice(("slow-2", "slow-3", f"engine-{name}"))
    return Flaw({"image": f"127.0.0.1:5000/{image}:v1", "imagePullPolicy": "Always"})


def _command(rng: random.Random, name: str, program: programs.Program) -> Flaw:
    return Flaw({"command": [_NOWHERE]}, words={"startError": _CANNOT_START})


def _environment(rng: random.Random, name: str, program: programs.Program) -> Flaw:
    optional = {"optional": True} if rng.random() < 0.25 else {}
    kind = rng.choice(("configMap", "secret"))
    missing = {"name": "nope", **optional}
    if rng.random() < 0.4:
        return Flaw({"envFrom": [{f"{kind}Ref": missing}]})
    if rng.random() < 0.5:
        return Flaw(
            {"env": [{"name": "A", "valueFrom": {f"{kind}KeyRef": missing | {"key": "a"}}}]}
        )
    key = {"name": _THERE, "key": rng.choice(("nope", "ca.crt")), **optional}
    return Flaw({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": key}}]})


def _volume(rng: random.Random, name: str, program: programs.Program) -> Flaw:
    mount: Raw = {"name": f"v-{name}", "mountPath": "/v"}
    sound: tuple[Raw, ...] = ({"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}})
    if rng.random() < 0.3:
        # A part of a volume; of a variable that is there, or not.
        path = rng.choice(({"subPath": "x"}, {"subPathExpr": "$(A)"}, {"subPathExpr": "$(B)"}))
        variables = {"env": [{"name": "A", "value": "y"}]}
        made = Flaw({"volumeMounts": [mount | path], **variables}, dict(rng.choice(sound)))
    else:
        made = Flaw({"volumeMounts": [mount]}, copy.deepcopy(rng.choice(_VOLUMES)))
    made.volume["name"] = mount["name"]
    return made


_LABELS = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
_ITEM = {"name": _THERE, "items": [{"key": "nope", "path": "x"}]}
_VOLUMES: tuple[Raw, ...] = (
    {"configMap": {"name": "nope"}},
    {"configMap": {"name": "nope", "optional": True}},
    {"configMap": _ITEM},
    {"configMap": _ITEM | {"optional": True}},
    {"configMap": {"name": _THERE}},
    {"secret": {"secretName": "nope"}},
    {"projected": {"sources": [{"configMap": {"name": _THERE}}, {"secret": {"name": "nope"}}]}},
    {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    {"downwardAPI": {"items": [_LABELS]}},
    {"hostPath": {"path": "/nope", "type": "Directory"}},
    {"hostPath": {"path": "/etc", "type": "File"}},
    {"hostPath": {"path": "/etc", "type": ""}},
    {"persistentVolumeClaim": {"claimName": "nope"}},
)


def _rights(rng: random.Random, name: str, program: programs.Program) -> Flaw:
    wanted: list[Raw] = [
        {"runAsNonRoot": True},
        {"runAsNonRoot": True, "runAsUser": 0},
        {"runAsNonRoot": True, "runAsUser": 1000},
        {"runAsUser": 1000, "runAsGroup": 1000},
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "nope.json"}},
        {"seccompProfile": {"type": "RuntimeDefault"}},
        {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
    ]
    if not program.writes:
        wanted.append({"readOnlyRootFilesystem": True})
    return Flaw({"securityContext": rng.choice(wanted)})
