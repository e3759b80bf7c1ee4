"""A stage with one node and one model at rest."""

import pytest

from modelserve.testing.stage import Stage


@pytest.fixture
async def stage() -> Stage:
    made = Stage()
    await made.add_node()
    await made.apply()
    await made.turn()
    return made
