"""What is told of a pod besides its status: events, logs, and what kubectl prints."""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from servelab.node.checks import facts, prints, recording
from servelab.node.checks.runs import JITTER_S, Difference, Place, Run, judged_s, real_place

KUBELET = "kubelet"
# A probe meets a server in the moment it opens or closes its port: what it then says is chance.
_RACES = re.compile(
    r"connection refused|closed idle connection|connection reset|EOF|no route to host"
    r"|no running task found|CONTAINER_EXITED|cannot exec in a stopped state"
)

# What else is told at each sync of a container that cannot be made, once that is often.
_EACH_SYNC = ("InspectFailed", "Failed", "Pulled")
OFTEN = 5

_Key = tuple[str, str, str, str, str]


def events(scenario: recording.Scenario, run: Run) -> Iterator[Difference]:
    real = _counted(scenario.events, real_place(scenario))
    ours = _counted(run.events, run.place)
    least = _counted(run.events, run.place, judged_s(scenario))
    runs = 1 + _restarts(scenario)
    for key in [*real, *(key for key in ours if key not in real)]:
        theirs, mine = real.get(key, 0), ours.get(key, 0)
        # Until when ours are counted is open: the count that suits best counts.
        nearest = min(max(theirs, least.get(key, 0)), mine)
        if nearest == theirs or _chance(key, theirs, nearest, runs):
            continue
        yield Difference(
            scenario.scenario, f"event: {' | '.join(key)}", theirs or None, mine or None
        )


def _chance(key: _Key, real: int, ours: int, runs: int) -> bool:
    """Whether the counts differ by no more than a kubelet's own do from run to run.

    A failing probe: one more or less in each run of the container; none at all where it hit a
    closing port.
    """
    if (key[1] == "BackOff" or key[2] == "Error: ImagePullBackOff") and real and ours:
        # Told at each sync of each back-off; one sync more or less in each depends on what else
        # wakes a kubelet, and when.
        return abs(real - ours) <= max(1, runs - 1)
    if key[1] in _EACH_SYNC and min(real, ours) >= OFTEN:
        return abs(real - ours) <= 1
    if key[1] != "Unhealthy":
        return False
    missing = not (real and ours)
    return abs(real - ours) <= runs and (not missing or _RACES.search(key[2]) is not None)


def told_all(scenario: recording.Scenario, run: Run) -> bool:
    """Whether each event of the recording has come as often as it has to."""
    return not list(events(scenario, run))


def _restarts(scenario: recording.Scenario) -> int:
    counts = [
        entry.get("restartCount", 0)
        for update in scenario.updates
        for key in recording.LISTS
        for entry in update.status.get(key) or ()
    ]
    return max(counts, default=0)


def _counted(
    events: Sequence[recording.Event], at: Place, until_s: float | None = None
) -> dict[_Key, int]:
    """Counts by what the events say; until that time, where they were watched."""
    found: dict[_Key, int] = {}
    for event in events:
        message = facts.mask(event.message, at.namespace, at.node)
        component = str(event.source.get("component", ""))
        if component != KUBELET:
            continue  # Schedulers and controllers are not what is compared.
        key = (event.type, event.reason, message, event.field_path or "", component)
        count = event.count or 1
        if until_s is not None and event.seen:
            count = max((n for t, n in event.seen if t <= until_s), default=0)
        found[key] = found.get(key, 0) + count
    return found


def logs(scenario: recording.Scenario, run: Run) -> Iterator[Difference]:
    ours = {log.query: log for log in run.logs}
    place = real_place(scenario)
    for log in scenario.logs:
        mine = ours.get(log.query)
        theirs = _answer(log, place)
        found = None if mine is None else _answer(mine, run.place)
        if theirs != found:
            yield Difference(scenario.scenario, f"log ?{log.query}", theirs, found)


def printed(scenario: recording.Scenario, run: Run) -> Iterator[Difference]:
    place = real_place(scenario)
    ours = {(each.t, each.command): each for each in run.prints}
    for each in prints.compared(scenario):
        mine = ours.get((each.t, each.command))
        if mine is None or _moving(scenario, each.t):
            continue
        theirs, found = (
            prints.lines(each, place.namespace, place.node),
            prints.lines(mine, run.place.namespace, run.place.node),
        )
        if theirs != found:
            changed = list(difflib.unified_diff(theirs, found, lineterm="", n=0))[2:]
            real, emulated = (
                [line[1:] for line in changed if line.startswith(sign)] for sign in "-+"
            )
            yield Difference(scenario.scenario, f"kubectl {each.command}", real, emulated)


def _moving(scenario: recording.Scenario, at_s: float) -> bool:
    """Whether the pod's status changed so close to that time that either side may be behind."""
    return any(abs(update.t - at_s) < JITTER_S for update in scenario.updates)


def _answer(log: recording.Log, at: Place) -> list[Any]:
    body: Any = facts.mask(log.body, at.namespace, at.node)
    if log.status >= 400:
        try:
            answer = json.loads(body)
            body = {key: answer.get(key) for key in ("status", "reason", "code", "message")}
        except (ValueError, AttributeError):
            body = body.strip()
    return [log.status, body]
