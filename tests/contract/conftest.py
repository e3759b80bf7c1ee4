"""The implementations of ports.Cluster that the contract is held against."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from modelserve import ports, testing
from modelserve.adapters import kube
from servelab.cluster import local


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A control plane without any of our own processes."""
    data_dir = tmp_path_factory.mktemp("contract")
    options = local.Options(name="contract", data_dir=data_dir, processes=(), keep=False)
    with local.LocalCluster(options) as running:
        yield running.kubeconfig


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
