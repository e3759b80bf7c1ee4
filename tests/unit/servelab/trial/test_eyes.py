"""Eyes see what the API server tells, and say when something did not come."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.api import names
from modelserve.testing.apiserver import MemoryCluster
from servelab.trial import eyes


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
async def watched(cluster: MemoryCluster) -> AsyncIterator[eyes.Eyes]:
    async with eyes.Eyes(cluster).open() as opened:
        yield opened


def pod(name: str, owner: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {names.LABEL_MODELSERVE: owner}}, "spec": {}}


def a_pod(**status: Any) -> ports.Object:
    return {"metadata": {"name": "a"}, "status": status}


async def test_pods_are_told_by_their_model(cluster: MemoryCluster, watched: eyes.Eyes) -> None:
    for name, owner in (("a", "m"), ("b", "m"), ("c", "other")):
        await cluster.create(ports.PODS, "default", pod(name, owner))
    await watched.until(lambda: len(watched.pods) == 3, 5, "three pods")
    assert {one["metadata"]["name"] for one in watched.engines("m")} == {"a", "b"}


async def test_what_is_not_there_is_empty(watched: eyes.Eyes) -> None:
    assert (watched.status("m"), watched.condition("m", "Ready")) == ({}, {})
    assert (watched.ordered("m"), watched.engines("m")) == (0, [])


async def test_waiting_in_vain_names_what_for(watched: eyes.Eyes) -> None:
    with pytest.raises(errors.ModelServeError, match="for a miracle, in vain"):
        await watched.until(lambda: None, 0.0, "a miracle")


async def test_a_moment_is_the_first_sight(cluster: MemoryCluster, watched: eyes.Eyes) -> None:
    moment = eyes.Moment(watched.pods, lambda one: one["metadata"]["name"] == "a")
    assert moment.after(0.0) != moment.after(0.0)
    await cluster.create(ports.PODS, "default", pod("a", "m"))
    await watched.until(lambda: len(watched.pods) == 1, 5, "a pod")
    assert moment.after(0.0) > 0


async def test_a_closed_moment_looks_no_more(cluster: MemoryCluster, watched: eyes.Eyes) -> None:
    moment = eyes.Moment(watched.pods, lambda one: True)
    moment.close()
    await cluster.create(ports.PODS, "default", pod("a", "m"))
    await watched.until(lambda: len(watched.pods) == 1, 5, "a pod")
    assert moment.after(0.0) != moment.after(0.0)


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("seen", "serving", "ready"),
    [
        pytest.param(a_pod(phase="Pending"), True, False, id="starting"),
        pytest.param(a_pod(phase="Running", conditions=READY), True, True, id="ready"),
        pytest.param(a_pod(phase="Failed", conditions=READY), False, False, id="failed"),
        pytest.param(
            {
                "metadata": {"name": "a", "deletionTimestamp": "now"},
                "status": {"conditions": READY},
            },
            False,
            False,
            id="leaving",
        ),
    ],
)
def test_a_pod_that_leaves_serves_no_more(seen: ports.Object, serving: bool, ready: bool) -> None:
    assert (eyes.serving(seen), eyes.ready(seen)) == (serving, ready)
