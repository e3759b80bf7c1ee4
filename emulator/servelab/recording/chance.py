"""Cases by chance: small pods in which anything may meet anything, the same ones for a seed.

Each container is a shell command and the words that say the same to an emulated node.
"""

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from servelab.recording import asking, cases, flaws, programs

Raw = dict[str, Any]

# What happens at whole seconds of a container's life is not met by an act at the same time.
_OFF_S = (0.25, 0.5, 0.75)
_IMAGE = "127.0.0.1:5000/engine-c:v1"


@dataclasses.dataclass(frozen=True, slots=True)
class _Made:
    """A container, and what goes with it."""

    raw: Raw
    words: programs.Words
    volumes: Sequence[Raw]

    @property
    def name(self) -> str:
        return str(self.raw["name"])


def draw(count: int, seed: int) -> list[cases.Case]:
    """So many cases, by that seed."""
    return [_case(f"chance-{seed}-{number}", seed, number) for number in range(count)]


def _case(name: str, seed: int, number: int) -> cases.Case:
    rng = random.Random(f"{seed}/{number}")
    grace_s = rng.choice((0, 1, 2, 3, 5, 8))
    shared = _chance(rng, 0.06)
    inits = [_init(rng, letter, grace_s) for letter in "ab"[: rng.choice((0, 0, 0, 1, 1, 2))]]
    mains = [
        _main(rng, each, grace_s) for each in ("main", "second")[: rng.choice((1, 1, 1, 2, 2))]
    ]
    programs_of = [program for _, program in (*inits, *mains)]
    made = [_made(rng, raw, program, shared=shared) for raw, program in (*inits, *mains)]
    pod: Raw = {
        "restartPolicy": rng.choice(("Always", "Always", "OnFailure", "Never")),
        "terminationGracePeriodSeconds": grace_s,
        "containers": [each.raw for each in made[len(inits) :]],
        **({"shareProcessNamespace": True} if shared else {}),
    }
    if inits:
        pod["initContainers"] = [each.raw for each in made[: len(inits)]]
    if pod["restartPolicy"] == "Never":
        # The API server takes no resize policy that restarts.
        for each in made:
            each.raw.pop("resizePolicy", None)
    marks = [{"name": "mark", "emptyDir": {}}] if any(p.marks for p in programs_of) else []
    if volumes := [*marks, *(volume for each in made for volume in each.volumes)]:
        pod["volumes"] = volumes
    if _chance(rng, 0.12):
        pod["activeDeadlineSeconds"] = rng.randint(3, 9)
    seconds = float(rng.randint(14, 24))
    if gated := _chance(rng, 0.12):
        pod["readinessGates"] = [{"conditionType": "example.com/warm"}]
    return cases.Case(
        name=name,
        seconds=seconds,
        pod=pod,
        behavior={each.name: each.words for each in made},
        acts=_acts(rng, pod, seconds, gated=gated),
    )


def _main(rng: random.Random, name: str, grace_s: int) -> tuple[Raw, programs.Program]:
    program = programs.main(rng)
    return _lasting(rng, name, program, grace_s, ruled=0.3), program


def _init(rng: random.Random, name: str, grace_s: int) -> tuple[Raw, programs.Program]:
    if _chance(rng, 0.45):
        program = programs.sidecar(rng)
        raw = _lasting(rng, name, program, grace_s, ruled=0.2)
        return raw | {"restartPolicy": "Always"}, program
    program = programs.init(rng)
    raw = _container(rng, name, program)
    raw.pop("resizePolicy", None)
    if _chance(rng, 0.2):
        raw |= asking.policy(rng)
    return raw, program


def _lasting(
    rng: random.Random, name: str, program: programs.Program, grace_s: int, *, ruled: float
) -> Raw:
    """One with probes and hooks; that share of them has a restart policy of its own."""
    raw = _container(rng, name, program) | asking.probes(rng, name, program)
    raw |= asking.hooks(rng, name, grace_s)
    return raw | asking.policy(rng) if _chance(rng, ruled) else raw


def _container(rng: random.Random, name: str, program: programs.Program) -> Raw:
    raw: Raw = {"name": name, "sh": program.command(name), **asking.resources(rng, program)}
    if _chance(rng, 0.25):
        raw["terminationMessagePolicy"] = "FallbackToLogsOnError"
    if program.marks:
        raw["volumeMounts"] = [{"name": "mark", "mountPath": "/m"}]
    return raw


def _made(rng: random.Random, raw: Raw, program: programs.Program, *, shared: bool) -> _Made:
    if shared:
        program = dataclasses.replace(program, words=program.without_init())
    if not _chance(rng, 0.2):
        return _Made(raw, program.words, ())
    made, volumes, words = flaws.flawed(rng, raw, program)
    return _Made(made, words, volumes)


# What others do to it.


def _acts(rng: random.Random, pod: Raw, seconds: float, *, gated: bool) -> list[cases.Act]:
    acts = [_gate(rng)] if gated else []
    if _chance(rng, 0.15):
        acts.append(_change(rng, pod, seconds))
    if _chance(rng, 0.6):
        gone = _deletion(rng, seconds)
        acts = [*(act for act in acts if act.t < gone.t), gone]
    return sorted(acts, key=lambda act: act.t)


def _gate(rng: random.Random) -> cases.Act:
    row = {"type": "example.com/warm", "status": rng.choice(("True", "False")), "reason": "Chance"}
    patch = {"status": {"conditions": [row]}}
    return cases.Act(t=_moment(rng, 2, 6), verb="patch", subresource="status", patch=patch)


def _change(rng: random.Random, pod: Raw, seconds: float) -> cases.Act:
    """A resize of what has resources, at any moment; else another image, or a deadline."""
    at_s = _moment(rng, 0, int(seconds) - 8)
    sized = [raw for raw in pod["containers"] if "cpu" in str(raw.get("resources"))]
    if sized and _chance(rng, 0.8):
        more = {kind: {"cpu": "300m"} for kind in sized[0]["resources"]}
        if "limits" in more:
            more["requests"] = {"cpu": "300m"}
        changed = {"name": sized[0]["name"], "resources": more}
        patch: Raw = {"spec": {"containers": [changed]}}
        return cases.Act(t=at_s, verb="patch", subresource="resize", patch=patch)
    if "activeDeadlineSeconds" not in pod and _chance(rng, 0.3):
        patch = {"spec": {"activeDeadlineSeconds": rng.randint(2, 9)}}
    else:
        name = rng.choice(pod["containers"])["name"]
        patch = {"spec": {"containers": [{"name": name, "image": _IMAGE}]}}
    return cases.Act(t=at_s, verb="patch", patch=patch)


def _deletion(rng: random.Random, seconds: float) -> cases.Act:
    at_s = _moment(rng, 1, int(seconds) - 4) if _chance(rng, 0.8) else _moment(rng, 0, 1)
    if _chance(rng, 0.1):
        return cases.Act(t=at_s, verb="evict")
    grace_s = rng.choice((None, None, None, 0, 1, 2, 6))
    return cases.Act(t=at_s, verb="delete", grace_seconds=grace_s)


def _moment(rng: random.Random, first_s: int, last_s: int) -> float:
    return rng.randint(first_s, max(first_s, last_s)) + rng.choice(_OFF_S)


def _chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share
