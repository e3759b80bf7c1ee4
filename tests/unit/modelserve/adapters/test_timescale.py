"""One time scale for all processes."""

import pytest

from modelserve import errors, ports, testing
from modelserve.adapters import timescale
from modelserve.api import names


async def published(text: str) -> testing.MemoryCluster:
    cluster = testing.MemoryCluster()
    body = {
        "metadata": {"name": names.TIME_CONFIG_MAP},
        "data": {names.TIME_SCALE_KEY: text},
    }
    await cluster.create(ports.CONFIG_MAPS, "ns", body)
    return cluster


async def test_without_a_config_map_any_scale_goes() -> None:
    await timescale.check(testing.MemoryCluster(), "ns", 60.0)


@pytest.mark.parametrize("text", ["60", "60.0", " 6e1 "])
async def test_the_published_scale_goes(text: str) -> None:
    await timescale.check(await published(text), "ns", 60.0)


async def test_another_scale_is_refused_with_both_numbers() -> None:
    with pytest.raises(errors.InputError, match=r"time scale 1 is not the 60 .*--time-scale 60"):
        await timescale.check(await published("60"), "ns", 1.0)


async def test_a_scale_that_is_no_number_is_refused() -> None:
    with pytest.raises(errors.InputError, match="'fast', which is no number"):
        await timescale.check(await published("fast"), "ns", 1.0)
