"""A KubeCluster at a scripted server, and a bad line to a cluster in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors, ports, testing
from modelserve.adapters import kube
from modelserve.testing import scripted


class Line:
    """A way to the API server: answers take ``latency_s``; ``mute`` ones are lost, then it is."""

    def __init__(self, cluster: ports.Cluster, clock: testing.ManualClock) -> None:
        self._cluster, self._clock = cluster, clock
        self.latency_s, self.mute = 0.0, ""

    def __getattr__(self, verb: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            await self._clock.sleep_real(self.latency_s / 2)
            answer = await getattr(self._cluster, verb)(*arguments, **options)
            await self._clock.sleep_real(self.latency_s / 2)
            if verb == self.mute:
                self.mute = ""
                raise errors.Unavailable("the connection was cut")
            return answer

        return call


@pytest.fixture
def make_line() -> type[Line]:
    return Line


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
