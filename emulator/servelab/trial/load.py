"""The load client from outside: starts the process, follows its progress, takes the outcomes."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from modelserve import errors
from servelab.trial import answer, worker

# One line holds all outcomes.
LINE_LIMIT_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Progress:
    """Requests so far."""

    sent: int = 0
    done: int = 0
    errors: int = 0


class Load:
    """One run of a plan in a process of its own; leave the block and the process is gone."""

    def __init__(self, plan: worker.Plan, told: Callable[[Progress], None]) -> None:
        self._plan = plan
        self._told = told
        self._process: asyncio.subprocess.Process | None = None
        self.cpu_s = 0.0

    async def __aenter__(self) -> Self:
        """Start the process and wait until it has built its requests."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            worker.__name__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT_BYTES,
            start_new_session=True,
        )
        try:
            await self._write(self._plan.to_json())
            await self._read()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def run(self) -> tuple[float, Sequence[answer.Outcome]]:
        """Send everything; when it began (monotonic real s) and all outcomes."""
        start_real_s = time.monotonic()
        await self._write({"start_real_s": start_real_s})
        while True:
            line = await self._read()
            if "outcomes" in line:
                self.cpu_s = line["cpu_s"]
                return start_real_s, [answer.Outcome(*one) for one in line["outcomes"]]
            self._told(Progress(**line))

    async def stop(self) -> None:
        """End the process, whatever it does."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _write(self, document: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")
        await self._process.stdin.drain()

    async def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise errors.ModelServeError("the load client ended early; its words are above")
        document: dict[str, Any] = json.loads(line)
        return document
