"""Operators with Leases in different namespaces: one decides."""

import logging
from typing import Any

import pytest

from modelserve import ports, testing
from modelserve.adapters import rivals

NAME = "modelserve-operator"


class Scene:
    """This operator is in namespace ``ours``; others renew when told to."""

    def __init__(self) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        self.rivals = rivals.Rivals(self.cluster, "ours", NAME, self.clock)
        self._renewals = 0

    async def renew(self, namespace: str, since: str, holder: str = "someone", **more: Any) -> None:
        self._renewals += 1
        spec = {"holderIdentity": holder, "acquireTime": since, "renewTime": str(self._renewals)}
        body = {"spec": spec, **more}
        await self.cluster.apply(ports.LEASES, namespace, NAME, body, manager="x", force=True)

    async def first(self) -> bool:
        await self.rivals.look()
        return self.rivals.none_before_us.is_set()


async def test_alone_we_decide() -> None:
    scene = Scene()
    await scene.renew("ours", "2026-01-02")
    assert await scene.first()


async def test_whoever_led_before_us_goes_first_as_long_as_it_renews() -> None:
    scene = Scene()
    await scene.renew("ours", "2026-01-02")
    for _ in range(5):
        await scene.renew("theirs", "2026-01-01")
        assert not await scene.first()
        await scene.clock.advance(10)
    await scene.clock.advance(6)
    assert await scene.first(), "its Lease has run out"


async def test_whoever_came_later_is_told_of_and_waits_for_us(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    await scene.renew("ours", "2026-01-01")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await scene.renew("theirs", "2026-01-02", holder="late")
            assert await scene.first()
    [record] = caplog.records
    assert "late in namespace theirs" in record.getMessage()
    assert "same --namespace" in record.getMessage()


async def test_one_that_gave_its_lease_back_is_no_rival() -> None:
    scene = Scene()
    await scene.renew("ours", "2026-01-02")
    await scene.renew("theirs", "2026-01-01")
    assert not await scene.first()
    await scene.renew("theirs", "2026-01-01", holder="")
    assert await scene.first()


async def test_of_two_that_came_at_once_exactly_one_goes_first() -> None:
    scene = Scene()
    other = rivals.Rivals(scene.cluster, "theirs", NAME, scene.clock)
    await scene.renew("ours", "2026-01-01")
    await scene.renew("theirs", "2026-01-01")
    await other.look()
    assert await scene.first() is not other.none_before_us.is_set()
