"""``servelab demo``: what happens to the story when a process of the cluster ends."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from modelserve import errors
from servelab.cli import demo
from servelab.cluster import processes


def nobody() -> Sequence[processes.Death]:
    return []


def the_operator() -> Sequence[processes.Death]:
    return [processes.Death("operator", 1, Path("operator.log"), "  lost the lead")]


async def the_story() -> str:
    return "told"


async def waiting(ended: list[bool]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(True)


async def test_a_story_is_told_to_its_end() -> None:
    assert await demo.while_all_live(the_story(), nobody, 0.0) == "told"


async def test_a_process_that_ends_ends_the_story_with_its_last_words() -> None:
    ended: list[bool] = []
    with pytest.raises(errors.SetUpError, match=r"operator ended with exit code 1(.|\n)*lost"):
        await demo.while_all_live(waiting(ended), the_operator, 0.0)
    assert ended == [True]
