"""One gateway's stream, where it answers with something else than figures."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import aiohttp
import pytest

from modelserve import ports, testing
from modelserve.adapters import links
from modelserve.api import wire
from modelserve.testing import scripted

DENIED = scripted.respond(401, {"error": "the token is missing or wrong"})
FIGURES = scripted.stream(wire.DemandSnapshot("g1", "e1", 1, ()).to_json(), then="silence")


class Clock(testing.ManualClock):
    """Whoever sleeps is put into ``rests``, to be woken from there."""

    def __init__(self) -> None:
        super().__init__()
        self.rests: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def sleep_real(self, seconds: float) -> None:
        rest = asyncio.get_running_loop().create_future()
        self.rests.put_nowait(rest)
        await rest


class Scene:
    """A link to a gateway that answers as scripted."""

    def __init__(self, server: scripted.ScriptedServer, session: aiohttp.ClientSession) -> None:
        self.clock, self.heard = Clock(), asyncio.Event()
        self._rest: asyncio.Future[None] | None = None
        self.link = links.Link(
            "g1", server.address, session, self.clock, random.Random(1), self._take
        )
        self.link.renew("e1", self.clock.real_s())

    def _take(self, view: ports.GatewayView, before: ports.GatewayView | None) -> None:
        self.heard.set()

    async def refused(self, times: int) -> str:
        """What is told once it was refused so often; the link then rests until ``go_on``."""
        for _ in range(times - 1):
            await self.go_on()
        self._rest = await self.clock.rests.get()
        return self.link.why_silent(self.clock.real_s())

    async def go_on(self) -> None:
        rest = self._rest or await self.clock.rests.get()
        rest.set_result(None)
        self._rest = None


@contextlib.asynccontextmanager
async def linked(*script: scripted.Answer) -> AsyncIterator[Scene]:
    async with scripted.ScriptedServer(*script) as server, aiohttp.ClientSession() as session:
        scene = Scene(server, session)
        task = asyncio.create_task(scene.link.run())
        yield scene
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_refused_token_is_told_once_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked(DENIED, DENIED, DENIED) as scene:
        told = await scene.refused(3)
    assert told.startswith("gateway g1 at 127.0.0.1:")
    assert "--token-file" in told
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [told]


async def test_figures_end_the_trouble() -> None:
    async with linked(DENIED, FIGURES) as scene:
        assert await scene.refused(1)
        await scene.go_on()
        await scene.heard.wait()
        assert scene.link.why_silent(scene.clock.real_s()) == ""


async def test_another_program_at_the_address_is_told_of() -> None:
    async with linked(scripted.respond(404, {})) as scene:
        assert "HTTP 404" in await scene.refused(1)
