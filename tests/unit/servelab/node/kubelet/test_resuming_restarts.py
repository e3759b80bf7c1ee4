"""Containers that restart, when their emulator does: nothing begins in the past."""

import json
from typing import Any

import pytest

from modelserve.api import names

ALWAYS = {"imagePullPolicy": "Always"}


def test_a_restart_long_after_the_emulator_came_back_is_no_restart_of_the_past(play: Any) -> None:
    pod = play({"exitAfterSeconds": 100, "exitCode": 1}, container=ALWAYS).run(50)
    pod.life = pod.begin()
    entry = pod.run(110).container()
    assert entry["restartCount"] == 1
    ended_at = entry["lastState"]["terminated"]["finishedAt"]
    assert entry["state"]["running"]["startedAt"] > ended_at


@pytest.mark.parametrize("when_s", [40 + 0.5 * n for n in range(16)])
@pytest.mark.parametrize(("scale", "after_s"), [(1.0, 2), (20.0, 40)])
def test_a_crash_loop_goes_on_with_the_back_off_that_it_had(
    play: Any, when_s: float, scale: float, after_s: float
) -> None:
    pod = play({"exitAfterSeconds": after_s, "exitCode": 1}, scale=scale).run(when_s)
    before = pod.container()["restartCount"]
    pod.life = pod.begin()
    assert pod.run(when_s + 2).container()["restartCount"] <= before + 1


def test_a_resumed_back_off_grows_as_one_that_was_never_interrupted(play: Any) -> None:
    straight = play({"exitAfterSeconds": 2, "exitCode": 1}).run(200).container()
    pod = play({"exitAfterSeconds": 2, "exitCode": 1}).run(45)
    pod.life = pod.begin()
    assert pod.run(200).container()["restartCount"] == straight["restartCount"]


def test_an_engine_that_crashed_leaves_the_pods_start_as_it_was(play: Any) -> None:
    pod = play({"exitAfterSeconds": 2, "exitCode": 1}).run(40)
    taken_on = pod.raw["status"]["startTime"]
    began_ms = round(pod.now * 1000) - 10_000
    stamp = {"phase": "WeightLoad", "start": began_ms, "end": 0, "planned": 9}
    told = json.dumps({"timeScale": 1.0, "stamps": [stamp]})
    pod.raw["metadata"].setdefault("annotations", {})[names.PHASES] = told
    pod.life = pod.begin()
    assert pod.run(80).raw["status"]["startTime"] == taken_on
