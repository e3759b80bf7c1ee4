"""The whole machine against a real kubelet: facts and their order, times, events."""

from pathlib import Path
from typing import Any

import pytest

from servelab.node.checks import comparing, recording

RECORDINGS = Path(__file__).parents[1] / "checks" / "recordings"
FILES = ("kubelet-1.37.2.json", "kubelet-1.37.2-more.json")
SCENARIOS = [each for name in FILES for each in comparing.read(RECORDINGS / name)]
HERE = comparing.Place("default", "node-0")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.scenario for each in SCENARIOS])
def test_a_pod_lives_as_on_a_real_node(scenario: recording.Scenario, replay: Any) -> None:
    pod = replay(scenario)
    if scenario.delete is not None:
        pod.run(scenario.delete.t).delete()
    while not comparing.seen_all(scenario, pod.updates, HERE) and pod.now < 1_800_000_080:
        pod.run(pod.now - 1_800_000_000.4 + 0.25)
    pod.run(max(scenario.last_s, pod.updates[-1].t) + 1.5)
    run = comparing.Run(HERE, pod.updates, pod.recorded(), scenario.logs)
    assert comparing.compare(scenario, run) == []
