"""What of a watched pod is news."""

from typing import Any

import pytest

from modelserve.api import names
from servelab.node.pods import podspec, watched


def pod(version: str = "7", status: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    metadata = {"namespace": "d", "name": "p", "uid": "u", "generation": 1, **meta}
    return {
        "metadata": {**metadata, "resourceVersion": version},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": status or {},
    }


KNOWN = podspec.parse(pod("5"))
NEWS = {
    "another version": pod("8"),
    "another generation": pod(generation=2),
    "its deletion": pod(deletionTimestamp="2026-11-30T00:00:00Z", deletionGracePeriodSeconds=30),
    "a fault": pod(annotations={names.FAULTS: "[]"}),
}


def test_what_we_wrote_ourselves_is_no_news() -> None:
    assert watched.is_echo(pod(), KNOWN, "7")


@pytest.mark.parametrize("told", NEWS.values(), ids=NEWS)
def test_what_others_wrote_is_news_though_our_write_came_after_it(told: dict[str, Any]) -> None:
    assert not watched.is_echo(told, KNOWN, "7")


def test_a_pod_with_gates_is_always_looked_at() -> None:
    body = pod("5")
    body["spec"]["readinessGates"] = [{"conditionType": "example.com/ready"}]
    assert not watched.is_echo(pod(), podspec.parse(body), "7")


def ready(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status}]}


def test_another_readiness_than_ours_is_taken_back_if_it_is_newer() -> None:
    assert watched.is_overwritten(pod("8", ready("False")), ready("True"), "7")
    assert not watched.is_overwritten(pod("6", ready("False")), ready("True"), "7")
    assert not watched.is_overwritten(pod("8", ready("True")), ready("True"), "7")
