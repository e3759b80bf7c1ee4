"""Scraping engines: a bad answer leaves the last sample to grow old."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import testing
from modelserve.adapters import scrape
from modelserve.engines import types
from modelserve.testing import scripted

NAMES = types.MetricNames(running=types.Series("running"), waiting=types.Series("waiting"))
GOOD = scripted.respond(200, None, raw=b"running 3\nwaiting 2\n")


@pytest.fixture
async def scraper() -> AsyncIterator[scrape.Scraper]:
    async with scrape.Scraper(testing.ManualClock()) as one:
        yield one


async def test_a_sample_has_the_figures_and_the_time(
    scraper: scrape.Scraper, server: scripted.ScriptedServer
) -> None:
    server.script = [GOOD]
    scraper.set_targets({"u": (f"http://{server.address}/metrics", NAMES)})
    assert scraper.sample("u") is None
    await scraper.scrape_all()
    sample = scraper.sample("u")
    assert sample is not None
    assert (sample.at_real_s, sample.waiting, sample.running) == (1000.0, 2.0, 3.0)
    assert server.requests[0].path == "/metrics"


async def _drop(request: Any) -> Any:
    request.transport.abort()


@pytest.mark.parametrize(
    "bad",
    [
        scripted.respond(500, None, raw=b"running 0\nwaiting 0\n"),
        scripted.respond(200, None, raw=b"<html>"),
        scripted.respond(200, None, raw=b""),
        scripted.respond(200, None, raw=b"running NaN\nwaiting 0\n"),
        scripted.respond(302, None, {"Location": "http://127.0.0.1:1/"}),
        scripted.respond(200, None, raw=b"x" * (scrape.BODY_LIMIT_BYTES + 1)),
        _drop,
    ],
    ids=["an error", "a page", "empty", "NaN", "elsewhere", "endless", "cut"],
)
async def test_a_bad_answer_keeps_the_old_sample(
    scraper: scrape.Scraper, server: scripted.ScriptedServer, bad: scripted.Answer
) -> None:
    server.script = [GOOD, bad]
    scraper.set_targets({"u": (f"http://{server.address}/metrics", NAMES)})
    await scraper.scrape_all()
    first = scraper.sample("u")
    await scraper.scrape_all()
    assert scraper.sample("u") is first


async def test_one_that_refuses_does_not_hinder_the_others(
    scraper: scrape.Scraper, server: scripted.ScriptedServer
) -> None:
    server.script = [GOOD]
    url = f"http://{server.address}/metrics"
    scraper.set_targets({"down": ("http://127.0.0.1:1/metrics", NAMES), "up": (url, NAMES)})
    await scraper.scrape_all()
    assert scraper.sample("down") is None
    assert scraper.sample("up") is not None


async def test_a_pod_that_is_no_target_any_more_is_forgotten(
    scraper: scrape.Scraper, server: scripted.ScriptedServer
) -> None:
    server.script = [GOOD]
    scraper.set_targets({"u": (f"http://{server.address}/metrics", NAMES)})
    await scraper.scrape_all()
    scraper.set_targets({})
    assert scraper.sample("u") is None


class ThreeRounds(testing.ManualClock):
    """Does not wait, keeps how long it was asked to, and ends it at the third time."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep_real(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == 3:
            raise asyncio.CancelledError


async def test_it_scrapes_once_a_second(server: scripted.ScriptedServer) -> None:
    clock = ThreeRounds()
    server.script = [GOOD] * 3
    async with scrape.Scraper(clock) as scraper:
        scraper.set_targets({"u": (f"http://{server.address}/metrics", NAMES)})
        with pytest.raises(asyncio.CancelledError):
            await scraper.run()
    assert clock.pauses == [1.0, 1.0, 1.0]
    assert len(server.requests) == 3


async def test_an_engine_that_exports_from_first_use_on_may_answer_empty(
    scraper: scrape.Scraper, server: scripted.ScriptedServer
) -> None:
    lazy = types.MetricNames(NAMES.running, NAMES.waiting, from_first_use=True)
    server.script = [scripted.respond(200, None, raw=b""), scripted.respond(503, None, raw=b"")]
    scraper.set_targets({"u": (f"http://{server.address}/metrics", lazy)})
    await scraper.scrape_all()
    first = scraper.sample("u")
    await scraper.scrape_all()
    assert first is not None
    assert (first.waiting, first.running, scraper.sample("u")) == (0.0, 0.0, first)
