"""The load client as a process of its own: ``python -m servelab.trial.worker``.

It reads a plan (one JSON line), builds every request, says that it is ready, and begins at the
moment the second line names. It sends open-loop: each request at its time, whatever became of the
others. Lines of progress go to standard output, at last all outcomes.
"""

import asyncio
import dataclasses
import gc
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from servelab.trial import answer, client, payload
from servelab.workload import arrivals

PROGRESS_REAL_S = 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What to send where. ``time_scale`` is emulated seconds in a real one."""

    host: str
    port: int
    model: str
    time_scale: float
    seed: int
    arrivals: Sequence[arrivals.Arrival]

    def to_json(self) -> dict[str, Any]:
        """One line of JSON's worth."""
        return dataclasses.asdict(self)

    @classmethod
    def parse(cls, data: dict[str, Any]) -> "Plan":
        """Read it back."""
        return cls(**(data | {"arrivals": [arrivals.Arrival(**one) for one in data["arrivals"]]}))

    def requests(self) -> list[payload.Request]:
        """All requests, in order of time."""
        host = f"{self.host}:{self.port}"
        return [
            payload.streamed_chat(self.model, host, one, self.seed + number)
            for number, one in enumerate(self.arrivals)
        ]


class _Run:
    """One open-loop run and its counts."""

    def __init__(self, plan: Plan, start_real_s: float) -> None:
        self._client = client.Client(plan.host, plan.port)
        self._plan = plan
        self._start_real_s = start_real_s
        self.sent = 0
        self.outcomes: list[answer.Outcome] = []

    async def all(self, requests: Sequence[payload.Request]) -> None:
        reporting = asyncio.create_task(self._report())
        try:
            async with asyncio.TaskGroup() as group:
                for request in requests:
                    due_real_s = self._start_real_s + request.at_s / self._plan.time_scale
                    await asyncio.sleep(max(0.0, due_real_s - time.monotonic()))
                    self.sent += 1
                    group.create_task(self._one(request))
        finally:
            reporting.cancel()
            self._client.close()

    async def _one(self, request: payload.Request) -> None:
        self.outcomes.append(await self._client.send(request))

    async def _report(self) -> None:
        while True:
            errors = sum(1 for outcome in self.outcomes if outcome.problem)
            _say({"sent": self.sent, "done": len(self.outcomes), "errors": errors})
            await asyncio.sleep(PROGRESS_REAL_S)


def _say(document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run until all answers are in; an end of the other side of the pipes ends it too."""
    line = sys.stdin.readline()
    if not line:
        return
    plan = Plan.parse(json.loads(line))
    requests = plan.requests()
    gc.freeze()
    gc.disable()
    _say({"ready": True})
    line = sys.stdin.readline()
    if not line:
        return
    run = _Run(plan, json.loads(line)["start_real_s"])
    begun_cpu_s = time.process_time()
    asyncio.run(run.all(requests))
    outcomes = [dataclasses.astuple(outcome) for outcome in run.outcomes]
    _say({"outcomes": outcomes, "cpu_s": time.process_time() - begun_cpu_s})


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(1)
