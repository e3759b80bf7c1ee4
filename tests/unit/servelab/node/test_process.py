"""The emulator's process says that it lives from its first moment, whatever it waits for."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from modelserve.testing import scripted
from servelab.node import process

HELD = {
    "metadata": {"name": "servelab-emulator", "uid": "u", "resourceVersion": "1"},
    "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": "t"},
}
NOTHING = scripted.respond(200, {"metadata": {"resourceVersion": "1"}, "items": []})


class Page:
    """What the process of those arguments says."""

    def __init__(self, port: int, server: scripted.ScriptedServer) -> None:
        self.server = server
        self._url = f"http://127.0.0.1:{port}"

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, asyncio.timeout(20):
            while True:
                with contextlib.suppress(aiohttp.ClientConnectionError):
                    async with session.get(self._url + path) as response:
                        return response.status, await response.text()
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def started(directory: Path, *script: scripted.Answer) -> AsyncIterator[Page]:
    """The process, at an API server that answers so and then is away."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with scripted.ScriptedServer(*script) as server:
        (directory / "kubeconfig").write_text(server.kubeconfig)
        settings = process.Settings(
            kubeconfig=str(directory / "kubeconfig"),
            namespace="ns",
            time_scale=1.0,
            kubelet_listen=("127.0.0.1", 0),
            kubelet_files=None,
            kubelet_self_signed=False,
            kubelet_exec=False,
            workers=1,
            data_dir=None,
            metrics_listen=("127.0.0.1", port),
        )
        running = asyncio.create_task(process.run(settings))
        try:
            yield Page(port, server)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_without_an_api_server_it_lives_and_is_not_ready(tmp_path: Path) -> None:
    async with started(tmp_path) as page:
        assert await page.get("/healthz") == (200, "ok")
        said = "not ready: the API server has not let us begin yet"
        assert await page.get("/readyz") == (503, said)


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/metrics/dcgm"])
async def test_one_that_waits_for_another_lives(tmp_path: Path, path: str) -> None:
    missing = scripted.respond(404, {"message": "there is no such ConfigMap"})
    async with started(tmp_path, missing, NOTHING, scripted.respond(200, HELD)) as page:
        await page.server.asked(3)
        status, _ = await page.get(path)
        assert status == 200


async def test_one_that_waits_for_another_is_ready_and_says_whom_it_waits_for(
    tmp_path: Path,
) -> None:
    missing = scripted.respond(404, {"message": "there is no such ConfigMap"})
    script: list[Any] = [missing, NOTHING, scripted.respond(200, HELD)]
    async with started(tmp_path, *script) as page:
        async with asyncio.timeout(20):
            while "held by" not in (told := await page.get("/readyz"))[1]:
                pass
        assert told == (200, "ok, standing by: Lease servelab-emulator is held by another")
