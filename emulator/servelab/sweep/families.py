"""A policy at its best: the settings that its users turn, a few dozen for each policy. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelserve import errors
from servelab.sim import reading, running, scenario
from servelab.sweep import plan, settings

FIXED = "fixed-N"
SCALING = (*settings.ONLY_MODEL, "scaling")

Preset = Mapping[str, Any]

# Each preset is run with so many replicas at least, where the scenario allows more than that: who
# may not go above is a fixed count. Fixed counts are these numbers too.
FLOORS = (0, 1, 2, 3, 4)
DOWN = "scaleDown.stabilizationWindowSeconds"
UP = "scaleUp.stabilizationWindowSeconds"
# Fields of `scaling`: as the scenario has it; full replicas, and full ones that go soon, which is
# cheap; fuller than full; emptier ones, and emptier ones yet that stay, which is quick.
EVERYBODY: Sequence[Preset] = (
    {},
    {"targetUtilization": 1.0},
    {"targetUtilization": 1.0, DOWN: 60, "cooldownSeconds": 60},
    {"targetUtilization": 1.25},
    {"targetUtilization": 0.65, DOWN: 300},
    {"targetUtilization": 0.5},
    {"targetUtilization": 0.3, DOWN: 600},
)
# Several at once from zero.
WAKES: Sequence[Preset] = ({"activationReplicas": 2}, {"activationReplicas": 4})
# What Committed has besides. Other targets and windows.
BETWEEN: Sequence[Preset] = (
    {"targetUtilization": 0.6},
    {"targetUtilization": 0.75},
    {"targetUtilization": 0.9},
    {DOWN: 600},
    {DOWN: 900},
    {"targetUtilization": 0.47, DOWN: 160},
    {"targetUtilization": 0.55, DOWN: 180},
    {"targetUtilization": 0.9, DOWN: 240},
    {"targetUtilization": 1.0, DOWN: 230},
    {"targetUtilization": 1.0, DOWN: 20, "cooldownSeconds": 90},
    {"targetUtilization": 1.1, DOWN: 60, "cooldownSeconds": 60},
)
# Emptier ones that go within seconds, but not for little.
BRIEF: Sequence[Preset] = tuple(
    {"targetUtilization": utilization, DOWN: down_s, "tolerance": tolerance}
    for utilization, down_s, tolerance in (
        (0.65, 20, 0.25),
        (0.7, 20, 0.25),
        (0.75, 10, 0.25),
        (0.75, 20, 0.2),
        (0.9, 20, 0.1),
    )
)
# Nothing is ordered for what is gone again within half a minute, or one.
HESITANT: Sequence[Preset] = (
    {UP: 60, DOWN: 0},
    {"targetUtilization": 0.6, UP: 60, DOWN: 120},
    {"burstHeadroom": 0.7, UP: 35, DOWN: 350},
)
# Longer waits before more are ordered, up to those of a fixed count that is enough.
PATIENT: Sequence[Preset] = tuple(
    {
        "targetUtilization": utilization,
        "drainGoalSeconds": goal_s,
        "tolerance": tolerance,
        DOWN: down_s,
    }
    for utilization, goal_s, tolerance, down_s in (
        (1.0, 30, 0.25, 90),
        (1.0, 300, 0.5, 0),
        (1.0, 1200, 0.5, 0),
        (1.15, 24, 0.4, 0),
        (1.2, 120, 0.25, 0),
        (1.3, 50, 0.25, 0),
        (1.5, 300, 0.25, 0),
        (2.0, 300, 0.5, 0),
    )
)
# Room for bursts that are gone within a cold start, for as long as they may come again.
ROOMY: Sequence[Preset] = tuple(
    {"burstHeadroom": slots, DOWN: down_s}
    for slots, down_s in ((1.0, 300), (1.1, 300), (1.5, 300), (2.0, 600), (3.0, 600))
)
COMMITTED: Sequence[Preset] = (
    *EVERYBODY,
    *BETWEEN,
    *BRIEF,
    *HESITANT,
    *PATIENT,
    *ROOMY,
    {"bufferReplicas": 2},
    {"bufferReplicas": 1, "targetUtilization": 1.0},
    {"activationReplicas": 2},
    {"activationReplicas": 3, "targetUtilization": 1.0},
    {"activationReplicas": 5, "targetUtilization": 1.0},
)
# Who has a setting of its own for it, beside Committed: Knative's annotation activation-scale.
OWN: Mapping[str, Sequence[Preset]] = {
    "committed": COMMITTED,
    "queue-depth": (*EVERYBODY, *WAKES),
    "knative": (*EVERYBODY, *WAKES),
}


def names(given: scenario.Scenario) -> Sequence[str]:
    """All of them, the one that is judged first; an oracle where it can know the traffic."""
    closed = any(one.closed for model in given.models for one in model.traffic)
    return [each for each in running.policies() if not (closed and each == running.ORACLE)]


def points(
    document: reading.Document, policy: str, floors: Sequence[int] = FLOORS, seeds: int = 1
) -> Sequence[plan.Point]:
    """All presets of a policy at all floors; one point for an oracle or a count by its number.

    Raises InputError, also for a scenario of several models.
    """
    models = reading.validate(document).models
    if len(models) > 1:
        raise errors.InputError(
            f"{document.name} has {len(models)} models, and --fronts would set the fields of one: "
            "make it a scenario of each"
        )
    scaling = models[0].spec.scaling
    most = scaling.max_replicas
    if policy == FIXED:
        counts = [f"fixed-{n}" for n in floors if 0 < n <= most]
        return plan.points(document, (), counts, seeds)
    if policy == running.ORACLE or policy not in running.policies():
        return plan.points(document, (), [policy], seeds)
    least = sorted({scaling.min_replicas, *(n for n in floors if n < most)})
    return [
        point
        for preset in OWN.get(policy, EVERYBODY)
        if preset.get("activationReplicas", 1) <= most
        for point in plan.points(document, _given(preset, least), [policy], seeds)
    ]


def _given(preset: Preset, least: Sequence[int]) -> Sequence[settings.Setting]:
    values = {"minReplicas": least} | {name: (value,) for name, value in preset.items()}
    return [
        settings.Setting(f"scaling.{name}", (*SCALING, *name.split(".")), each)
        for name, each in values.items()
    ]
