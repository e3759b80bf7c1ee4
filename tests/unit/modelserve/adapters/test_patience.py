"""A start that waits for the API server: what it waits out, and when it says so."""

import asyncio
import logging

import pytest

from modelserve import errors, testing
from modelserve.adapters import patience


class Attempt:
    """Fails with each of these in turn, the last for ever; None succeeds."""

    def __init__(self, *failures: Exception | None) -> None:
        self.failures = list(failures)

    async def __call__(self) -> None:
        failure = self.failures.pop(0) if len(self.failures) > 1 else self.failures[0]
        if failure is not None:
            raise failure


def waiting(attempt: Attempt, clock: testing.ManualClock) -> asyncio.Task[None]:
    return asyncio.ensure_future(patience.until(attempt, clock))


@pytest.mark.parametrize(
    "failure",
    [
        errors.Unavailable("no answer"),
        errors.Forbidden("not yours", 403),
        errors.SetUpError("no CRDs"),
    ],
)
async def test_what_waiting_mends_is_waited_out_however_long(failure: Exception) -> None:
    attempt, clock = Attempt(failure), testing.ManualClock()
    start = waiting(attempt, clock)
    await clock.advance(3600)
    assert not start.done()
    attempt.failures = [None]
    await clock.advance(patience.PAUSE_MOST_REAL_S)
    await start


async def test_what_stays_wrong_ends_the_start() -> None:
    start = waiting(Attempt(errors.InputError("another time scale")), testing.ManualClock())
    with pytest.raises(errors.InputError, match="another time scale"):
        await start


async def test_it_says_at_once_what_is_amiss_and_then_ever_more_seldom(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = testing.ManualClock()
    start = waiting(Attempt(errors.Unavailable("no answer")), clock)
    lines = []
    for real_s in (0.1, 120, 3600, 3600):
        caplog.clear()
        await clock.advance(real_s)
        lines.append(len(caplog.records))
    start.cancel()
    assert lines[0] == 1
    assert lines[1] <= 4
    assert lines[2] <= lines[3] + 6 <= 13


async def test_another_trouble_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = testing.ManualClock()
    start = waiting(Attempt(errors.Unavailable("away"), errors.Forbidden("no", 401)), clock)
    with caplog.at_level(logging.WARNING):
        await clock.advance(2)
    start.cancel()
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == ["away", "no"]
