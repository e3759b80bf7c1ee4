"""The whole machine against a real kubelet: facts and their order, times, events."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from servelab.node.checks import comparing, recording, surroundings

RECORDINGS = Path(__file__).parents[1] / "checks" / "recordings"
FILES = (
    "kubelet-1.37.2.json",
    "kubelet-1.37.2-more.json",
    "kubelet-1.37.2-cases.json",
    "kubelet-1.37.2-rules.json",
    "kubelet-1.37.2-varied.json",
    "kubelet-1.37.2-devices.json",
    "kubelet-1.37.2-restart-all.json",
    "kubelet-1.37.2-chance.json",
    "kubelet-1.37.2-force.json",
    "kubelet-1.37.2-wider.json",
)
SCENARIOS = [each for name in FILES for each in comparing.read(RECORDINGS / name)]
HERE = comparing.Place("default", "node-0")


def happenings(scenario: recording.Scenario, pod: Any) -> list[tuple[float, Any]]:
    """What others did to the pod, in order."""
    found = [(act.t, partial(pod.patch, act, scenario)) for act in scenario.acts]
    found += [
        (at_s, partial(pod.condition_written, entry))
        for at_s, entry in surroundings.foreign_conditions(scenario)
    ]
    if scenario.delete is not None:
        found.append((scenario.delete.t, partial(pod.delete, scenario.delete.grace_s)))
    return sorted(found, key=lambda happening: happening[0])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.scenario for each in SCENARIOS])
def test_a_pod_lives_as_on_a_real_node(scenario: recording.Scenario, replay: Any) -> None:
    pod = replay(scenario)
    for at_s, happens in happenings(scenario, pod):
        pod.run(at_s)
        happens()
    while not comparing.seen_all(scenario, pod.updates, HERE) and pod.now < 1_800_000_080:
        pod.run(pod.now - 1_800_000_000.4 + 0.25)
    pod.run(max(scenario.last_s, pod.updates[-1].t) + 1.5)
    run = comparing.Run(HERE, pod.updates, pod.recorded(), scenario.logs)
    assert comparing.compare(scenario, run) == []
