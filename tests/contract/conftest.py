"""The implementations of ports.Cluster that the contract is held against."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from modelserve import ports, testing
from modelserve.adapters import kube


@pytest.fixture
async def api_server(kubeconfig: Path) -> AsyncIterator[kube.KubeCluster]:
    async with await kube.KubeCluster.connect(str(kubeconfig)) as cluster:
        yield cluster


@pytest.fixture(params=["memory", pytest.param("api-server", marks=pytest.mark.cluster)])
def cluster(request: pytest.FixtureRequest) -> ports.Cluster:
    if request.param == "memory":
        return testing.MemoryCluster()
    found: kube.KubeCluster = request.getfixturevalue("api_server")
    return found


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of its own for each test: they share one API server."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_").lower())
    return str(words[:50].strip("-"))
