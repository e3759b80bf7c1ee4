"""The settings that are tried: a grid to begin with, then steps away from the best of it. Pure."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The ends and the API's default of each; what is left out of a candidate is the scenario's own.
UTILIZATIONS = (0.8, 0.5, 0.95)
BUFFERS = (0, 1)
COOLDOWNS_S = (None, 60, 900)
# Tried one at a time around the best.
STEPS: Mapping[str, Sequence[Any]] = {
    "drainGoalSeconds": (5, 30),
    "scaleDown.stabilizationWindowSeconds": (30, 300),
    "targetUtilization": (0.65,),
    "activationReplicas": (2,),
    "burstHeadroom": (0.5, 1.5),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """Fields of a ``scaling`` section, parts of a name with dots; others stay as they are."""

    fields: tuple[tuple[str, Any], ...]

    def named(self) -> dict[str, Any]:
        """The fields as a mapping."""
        return dict(self.fields)

    def stepped(self, name: str, value: Any) -> "Candidate":
        """The same with one field changed."""
        return Candidate(tuple((self.named() | {name: value}).items()))


# As the scenario has it.
UNTOUCHED = Candidate(())


def grid(max_replicas: int) -> Sequence[Candidate]:
    """What is tried first: the scenario's own settings, then a grid, the plainest of it before all.

    So a search that must end early has seen each number of replicas once.
    """
    return list(dict.fromkeys((UNTOUCHED, *sorted(_grid(max_replicas), key=_turns))))


def _turns(candidate: Candidate) -> int:
    """How many of its fields are not the first that is tried."""
    plain = {"targetUtilization": UTILIZATIONS[0], "bufferReplicas": BUFFERS[0]}
    return len([name for name, value in candidate.fields if plain.get(name, value) != value]) + (
        "cooldownSeconds" in candidate.named()
    )


def _grid(max_replicas: int) -> Iterator[Candidate]:
    # A cooldown only matters where the last replica may go.
    fields = itertools.product(UTILIZATIONS, BUFFERS, COOLDOWNS_S)
    for utilization, buffer, cooldown_s in fields:
        yield _candidate(0, utilization, buffer, cooldown_s)
    for least in floors(max_replicas):
        for utilization, buffer in itertools.product(UTILIZATIONS, BUFFERS):
            yield _candidate(least, utilization, buffer, None)
    for least in (0, *floors(max_replicas)):
        yield _candidate(least, 0.8, 0, None).stepped("policy", "QueueDepth")


def floors(max_replicas: int) -> Sequence[int]:
    """Fewest replicas that are tried besides none: 1, 2, 4 … up to the most there may be."""
    doubled = itertools.takewhile(lambda n: n < max_replicas, (2**n for n in range(11)))
    return (*doubled, max_replicas)


def steps(best: Candidate, max_replicas: int) -> Sequence[Candidate]:
    """Neighbours of the best, and the numbers of replicas between the doublings."""
    least = best.named().get("minReplicas", 0)
    found = [best.stepped(name, value) for name, values in STEPS.items() for value in values]
    if max_replicas < 2:
        found = [each for each in found if "activationReplicas" not in each.named()]
    between = {least - 1, least * 3 // 4, least * 5 // 4, least + 1}
    for other in sorted(between - {least}):
        if 0 <= other <= max_replicas:
            found.append(best.stepped("minReplicas", other))
    return [each for each in dict.fromkeys(found) if each != best]


def _candidate(least: int, utilization: float, buffer: int, cooldown_s: int | None) -> Candidate:
    fields: dict[str, float] = {"minReplicas": least, "targetUtilization": utilization}
    fields["bufferReplicas"] = buffer
    if cooldown_s is not None:
        fields["cooldownSeconds"] = cooldown_s
    return Candidate(tuple(fields.items()))
