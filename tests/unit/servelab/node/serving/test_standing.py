"""What the emulator's process says of itself, from its first moment until it plays nodes."""

import functools

from aiohttp import test_utils, web

from servelab.node import figures
from servelab.node.serving import standing


async def dcgm() -> web.Response:
    return web.Response(text="of GPUs")


async def said(told: standing.Standing, path: str = "/readyz") -> tuple[int, str]:
    async with test_utils.TestClient(test_utils.TestServer(told.app)) as client:
        response = await client.get(path)
        return response.status, await response.text()


async def test_it_is_not_ready_before_the_api_server_has_answered() -> None:
    told = standing.Standing(figures.Figures())
    assert await said(told, "/livez") == (200, "ok")
    assert (await said(told))[0] == 503


async def test_it_says_for_whom_it_waits_and_that_it_is_not_at_work_yet() -> None:
    found = []
    for waits_for in ("another", ""):
        told = standing.Standing(figures.Figures())
        told.stands_by(functools.partial(str, waits_for))
        found.append(await said(told))
    assert found == [
        (200, "ok, standing by: another"),
        (200, "ok, standing by: no nodes are played yet"),
    ]


async def test_at_work_it_is_plainly_ready_and_counts_when_it_is_asked() -> None:
    counted: list[str] = []

    told = standing.Standing(figures.Figures())
    told.stands_by(lambda: "another")
    told.plays(lambda: counted.append("once"), dcgm, lambda: "")
    assert await said(told) == (200, "ok")
    assert (await said(told, "/metrics"))[0] == 200
    assert (counted, await said(told, "/metrics/dcgm")) == (["once"], (200, "of GPUs"))


async def test_one_whose_lead_is_in_doubt_says_why_it_is_not_ready_and_lives() -> None:
    doubts = ["no renewal for 10 s", ""]
    told = standing.Standing(figures.Figures())
    told.plays(lambda: None, dcgm, lambda: doubts[0])
    assert await said(told) == (503, "not ready: no renewal for 10 s")
    assert await said(told, "/healthz") == (200, "ok")
    doubts.pop(0)
    assert await said(told) == (200, "ok")
