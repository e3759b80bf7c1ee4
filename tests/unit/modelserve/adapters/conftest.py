"""A KubeCluster at a scripted server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from modelserve.adapters import kube
from modelserve.testing import scripted


@pytest.fixture
async def server() -> AsyncIterator[scripted.ScriptedServer]:
    async with scripted.ScriptedServer() as running:
        yield running


@pytest.fixture
async def cluster(
    server: scripted.ScriptedServer, connect: Callable[[str], Awaitable[kube.KubeCluster]]
) -> kube.KubeCluster:
    return await connect(server.kubeconfig)


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Callable[[str], Awaitable[kube.KubeCluster]]]:
    opened: list[kube.KubeCluster] = []

    async def open_one(kubeconfig: str) -> kube.KubeCluster:
        path = tmp_path / "kubeconfig"
        path.write_text(kubeconfig)
        opened.append(await kube.KubeCluster.connect(str(path)))
        return opened[-1]

    yield open_one
    for one in opened:
        await one.close()
