"""Calls to the API server that need not wait for each other, a few at a time."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

AT_ONCE = 32

Result = TypeVar("Result")


async def gather(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """What each returns, in order. After a failure no further call begins; raises the first."""
    limit, failures = asyncio.Semaphore(AT_ONCE), list[Exception]()
    found: dict[int, Result] = {}

    async def one(number: int, each: Coroutine[Any, Any, Result]) -> None:
        async with limit:
            if failures:
                return
            try:
                found[number] = await each
            except Exception as error:
                failures.append(error)

    every = tuple(work)
    try:
        await asyncio.gather(*(one(number, each) for number, each in enumerate(every)))
    finally:
        # Those that have not begun will not: after a failure, or cut short themselves.
        for each in every:
            each.close()
    if failures:
        raise failures[0]
    return [found[number] for number in sorted(found)]
