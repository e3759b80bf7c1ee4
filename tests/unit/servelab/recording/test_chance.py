"""Pods drawn by chance: the same for a seed, and such as both sides understand."""

import json
import re

import pytest

from servelab.node.kubelet import behavior
from servelab.node.pods import podspec
from servelab.recording import cases, chance


def test_a_seed_gives_the_same_pods_however_many_are_drawn() -> None:
    assert chance.draw(5, seed=7) == chance.draw(9, seed=7)[:5]
    assert chance.draw(5, seed=7) != chance.draw(5, seed=8)


@pytest.mark.parametrize("case", chance.draw(60, seed=3), ids=lambda case: str(case.name))
def test_an_emulated_node_understands_what_is_drawn(case: cases.Case) -> None:
    pod = case.manifest("node-0")
    words = json.dumps({name: dict(said) for name, said in case.behavior.items()})
    meta = {
        "namespace": "d",
        "uid": "u",
        "annotations": {"emulator.modelserve.dev/behavior": words},
    }
    found = podspec.parse({**pod, "metadata": pod["metadata"] | meta})
    assert set(behavior.parse(found)) == set(case.behavior)
    assert all(0 <= act.t < case.seconds for act in case.acts)


def test_containers_of_a_pod_listen_at_ports_of_their_own() -> None:
    for case in chance.draw(60, seed=4):
        spec = case.manifest("n")["spec"]
        shells = [c["command"][-1] for c in (*spec.get("initContainers", ()), *spec["containers"])]
        ports = [found[1] for text in shells if (found := re.search(r"httpd.* -p (\d+)", text))]
        assert len(set(ports)) == len(ports)
