"""Faults of a node and its pods: who hears of which."""

from typing import Any

import pytest

from modelserve.api import faults as api
from modelserve.api import names
from modelserve.api.faults import FaultType as Type
from servelab.node.faults import ailments, troubles
from servelab.node.pods import podspec

T0 = 1_800_000_000.0
NODE = {"metadata": {"name": "n-0", "creationTimestamp": "2027-01-15T08:00:00Z"}}


def faults(*words: Any) -> list[api.Fault]:
    return [api.Fault.model_validate(each) for each in words]


def pod(uid: str = "a", gpus: int = 1, annotation: str = "") -> podspec.Pod:
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    meta = {"namespace": "d", "name": uid, "uid": uid, "annotations": {names.FAULTS: annotation}}
    spec = {"nodeName": "n-0", "containers": [{"name": "c", "image": "a:1", **limits}]}
    return podspec.parse({"metadata": meta, "spec": spec})


@pytest.fixture
def trouble() -> troubles.Troubles:
    return troubles.of_node(NODE, 1.0)


def kinds(trouble: troubles.Troubles, found: podspec.Pod) -> list[Type]:
    return [each.type for each in trouble.of_pod(found, T0)[0].entries]


def test_a_pod_has_its_nodes_faults_and_its_own(trouble: troubles.Troubles) -> None:
    trouble.hear(faults({"type": "SlowRegistry"}), 8)
    assert kinds(trouble, pod(annotation='[{"type":"CrashLoop"}]')) == [
        Type.SLOW_REGISTRY,
        Type.CRASH_LOOP,
    ]


def test_only_news_is_news(trouble: troubles.Troubles) -> None:
    said = faults({"type": "SlowRegistry"})
    assert [trouble.hear(said, 8), trouble.hear(said, 8)] == [True, False]


def test_a_pod_cannot_lose_its_node(trouble: troubles.Troubles) -> None:
    found, wrong = trouble.of_pod(pod(annotation='[{"type":"NodeLost"}]'), T0)
    assert (found.entries, wrong) == ((), "a fault of type NodeLost befalls nodes, not pods")


def test_an_annotation_that_cannot_be_read_is_told(trouble: troubles.Troubles) -> None:
    assert "is no JSON" in trouble.of_pod(pod(annotation="["), T0)[1]


def test_a_broken_gpu_strikes_the_pod_that_has_it(trouble: troubles.Troubles) -> None:
    trouble.hear(faults({"type": "XID", "seed": 2}), 8)
    assert [kinds(trouble, pod(uid)) for uid in "abcd"] == [[], [], [Type.XID], []]


def test_gpus_given_back_are_dealt_again(trouble: troubles.Troubles) -> None:
    trouble.hear(faults({"type": "XID"}), 8)
    assert kinds(trouble, pod("a")) == [Type.XID]
    trouble.gone("a")
    assert kinds(trouble, pod("b")) == [Type.XID]


def test_what_a_node_suffers_comes_and_goes(trouble: troubles.Troubles) -> None:
    trouble.hear(faults({"type": "GPUsVanish", "afterSeconds": 10, "durationSeconds": 10}), 8)
    seen = [trouble.ailment(T0 + at) for at in (5, 15, 25)]
    assert seen == [ailments.WELL, ailments.Ailment(gpus_gone=1.0), ailments.WELL]


def test_a_lost_node_is_cut_off(trouble: troubles.Troubles) -> None:
    trouble.hear(faults({"type": "NodeLost"}), 8)
    assert trouble.ailment(T0 + 1).cut_off


@pytest.mark.parametrize(("gone", "left"), [(1 / 8, "7"), (0.5, "4"), (1.0, "0")])
def test_what_is_gone_is_not_allocatable(gone: float, left: str) -> None:
    status = {
        "capacity": {"nvidia.com/gpu": "8"},
        "allocatable": {"cpu": "9", "nvidia.com/gpu": "8"},
    }
    found = ailments.allocatable(status, ailments.Ailment(gpus_gone=gone))
    assert found["allocatable"] == {"cpu": "9", "nvidia.com/gpu": left}
    assert found["capacity"] == status["capacity"]


def test_pool_annotation_and_node_are_heard_together() -> None:
    annotated = {"annotations": {names.FAULTS: '[{"type":"XID"}]'}}
    pool, node = {"metadata": {"name": "p", **annotated}}, {"metadata": {"name": "n", **annotated}}
    assert len(troubles.said(pool, faults({"type": "XID"}), node)) == 3


def test_one_that_cannot_be_read_spoils_no_other(caplog: pytest.LogCaptureFixture) -> None:
    node = {"metadata": {"name": "n", "annotations": {names.FAULTS: "["}}}
    assert len(troubles.said(None, faults({"type": "XID"}), node)) == 1
    assert "of node n is no JSON" in caplog.text
