"""Compares a real kubelet's story of a pod with an emulated one."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelserve import errors
from servelab.node.checks import facts, recording

# A kubelet's own times jitter by so much (syncs, relists, API writes).
JITTER_S = 1.5
# Each wait of a kubelet's between two tries is drawn between once and one and a half times its
# length; ours is the middle, so a real one is off by up to a fifth of what passed.
WAIT_SHARE = 0.25
_WAITS = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull")
# A probe meets a server in the moment it opens or closes its port: what it then says is chance.
_RACES = re.compile(
    r"connection refused|closed idle connection|connection reset|EOF|no route to host"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """What one scenario's pod shows differently; None where a side lacks it."""

    scenario: str
    where: str
    real: Any
    emulated: Any

    def to_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "where": self.where,
            "real": self.real,
            "emulated": self.emulated,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod ran, to be masked."""

    namespace: str
    node: str


@dataclass(frozen=True, slots=True)
class Run:
    """The emulated side of a scenario."""

    place: Place
    updates: Sequence[recording.Update]
    events: Sequence[recording.Event]
    logs: Sequence[recording.Log]


def real_place(scenario: recording.Scenario) -> Place:
    """Where the recorded pod ran."""
    namespace = scenario.pod["metadata"].get("namespace", "default")
    return Place(namespace, scenario.pod["spec"].get("nodeName") or "<none>")


def compare(scenario: recording.Scenario, run: Run) -> list[Difference]:
    """All differences, in the order: facts, their order and times, events, logs."""
    real = real_changes(scenario)
    ours = _judged(real, facts.changes(run.updates, *_names(run.place)), judged_s(scenario))
    found = list(_facts(scenario, real, ours))
    if not found:
        pairs = _pairs(real, ours)
        found += _order(scenario, pairs)
        found += _times(scenario, pairs)
    found += _events(scenario, run)
    found += _logs(scenario, run)
    return found


def real_changes(scenario: recording.Scenario) -> dict[str, list[facts.Change]]:
    """The recorded facts."""
    place = real_place(scenario)
    return facts.changes(scenario.updates, place.namespace, place.node)


def read(path: Path) -> list[recording.Scenario]:
    """Read a file of recordings that can be compared. Raises InputError with the place."""
    found = recording.read(path)
    for number, scenario in enumerate(found):
        try:
            real_changes(scenario)
            slack_s(scenario, scenario.last_s)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            where = f"scenario {number} ({scenario.scenario!r})"
            what = f"{type(error).__name__}: {error}"
            raise errors.InputError(f"{path} is no recording: {where}: {what}") from error
    return found


def judged_s(scenario: recording.Scenario) -> float:
    """Until when the emulated side is judged: the recording may have ended any time after that."""
    return scenario.last_s - WAIT_SHARE * _waited_s(scenario, scenario.last_s)


def slack_s(scenario: recording.Scenario, until_s: float) -> float:
    """How far apart two kubelets may be at that time of the scenario."""
    waited = _waited_s(scenario, until_s)
    return JITTER_S + scenario.probe_period_s + WAIT_SHARE * waited


def _waited_s(scenario: recording.Scenario, until_s: float) -> float:
    """Seconds spent in back-offs until then."""
    waited, before = 0.0, 0.0
    for update in scenario.updates:
        if update.t > until_s:
            break
        states = [
            entry["state"].get("waiting", {}).get("reason")
            for key in ("initContainerStatuses", "containerStatuses")
            for entry in update.status.get(key) or ()
        ]
        if any(reason in _WAITS for reason in states) and update.t - before > JITTER_S:
            waited += update.t - before
        before = update.t
    return waited


def seen_all(scenario: recording.Scenario, updates: Sequence[recording.Update], at: Place) -> bool:
    """Whether every fact of the recording has come."""
    real = real_changes(scenario)
    ours = _judged(real, facts.changes(updates, at.namespace, at.node), judged_s(scenario))
    return all(_reads_as(ours.get(key, []), found) for key, found in real.items())


def _names(place: Place) -> tuple[str, str]:
    return place.namespace, place.node


def _judged(
    real: Mapping[str, list[facts.Change]], ours: dict[str, list[facts.Change]], until_s: float
) -> dict[str, list[facts.Change]]:
    """Ours, without what goes beyond the recording after its end."""
    kept = {}
    for key, found in ours.items():
        most = len(real.get(key, ()))
        early = sum(change.t_s <= until_s for change in found)
        kept[key] = found[: max(most, early)]
    return kept


def _reads_as(ours: Sequence[facts.Change], real: Sequence[facts.Change]) -> bool:
    return _aligned(real, ours) is not None


def _aligned(
    real: Sequence[facts.Change], ours: Sequence[facts.Change]
) -> tuple[list[facts.Change], list[facts.Change]] | None:
    """Both without what only one of them shows for a moment; None if they differ in more."""
    kept = facts.without_blips(ours, [change.value for change in real])
    if kept is not None:
        return list(real), kept
    theirs = facts.without_blips(real, [change.value for change in ours])
    return None if theirs is None else (theirs, list(ours))


def _facts(
    scenario: recording.Scenario,
    real: Mapping[str, list[facts.Change]],
    ours: Mapping[str, list[facts.Change]],
) -> Iterator[Difference]:
    for key in sorted({*real, *ours}):
        theirs, mine = real.get(key, []), ours.get(key, [])
        if _aligned(theirs, mine) is None:
            yield Difference(scenario.scenario, f"status: {key}", _story(theirs), _story(mine))


def _story(found: Sequence[facts.Change]) -> list[list[Any]]:
    return [[round(change.t_s, 1), json.loads(change.value)] for change in found]


def _pairs(
    real: Mapping[str, list[facts.Change]], ours: Mapping[str, list[facts.Change]]
) -> list[tuple[facts.Change, facts.Change]]:
    pairs: list[tuple[facts.Change, facts.Change]] = []
    for key, theirs in real.items():
        both = _aligned(theirs, ours[key])
        if both is not None:
            pairs += zip(*both, strict=True)
    return pairs


def _order(
    scenario: recording.Scenario, pairs: Sequence[tuple[facts.Change, facts.Change]]
) -> Iterator[Difference]:
    """What came strictly after must not come before; what came at once may come in any order."""
    ordered = sorted(pairs, key=lambda pair: (pair[0].number, pair[1].number))
    for before, after in itertools.pairwise(ordered):
        if before[1].number > after[1].number:
            names = [f"{pair[0].key} = {pair[0].value}" for pair in (before, after)]
            yield Difference(scenario.scenario, "order", names, names[::-1])


def _times(
    scenario: recording.Scenario, pairs: Sequence[tuple[facts.Change, facts.Change]]
) -> Iterator[Difference]:
    for theirs, mine in pairs:
        if abs(theirs.t_s - mine.t_s) > slack_s(scenario, theirs.t_s):
            where = f"time: {theirs.key} = {theirs.value}"
            yield Difference(scenario.scenario, where, round(theirs.t_s, 1), round(mine.t_s, 1))


_Key = tuple[str, str, str, str, str]


def _events(scenario: recording.Scenario, run: Run) -> Iterator[Difference]:
    real = _counted(scenario.events, real_place(scenario))
    ours = _counted(run.events, run.place)
    least = _counted(run.events, run.place, judged_s(scenario))
    runs = 1 + _restarts(scenario)
    for key in [*real, *(key for key in ours if key not in real)]:
        theirs, mine = real.get(key, 0), ours.get(key, 0)
        if least.get(key, 0) <= theirs <= mine or _chance(key, theirs, mine, runs):
            continue
        yield Difference(
            scenario.scenario, f"event: {' | '.join(key)}", theirs or None, mine or None
        )


def _chance(key: _Key, real: int, ours: int, runs: int) -> bool:
    """Whether the counts differ by no more than a kubelet's own do from run to run.

    A failing probe: one more or less in each run of the container; none at all where it hit a
    closing port.
    """
    if key[1] == "BackOff" and real and ours:
        # Told at each sync in between; one sync more or less depends on what else wakes a kubelet.
        return abs(real - ours) <= 1
    if key[1] != "Unhealthy":
        return False
    missing = not (real and ours)
    return abs(real - ours) <= runs and (not missing or _RACES.search(key[2]) is not None)


def _restarts(scenario: recording.Scenario) -> int:
    counts = [
        entry.get("restartCount", 0)
        for update in scenario.updates
        for key in ("initContainerStatuses", "containerStatuses")
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
        key = (event.type, event.reason, message, event.field_path or "", component)
        count = event.count or 1
        if until_s is not None and event.seen:
            count = max((n for t, n in event.seen if t <= until_s), default=0)
        found[key] = found.get(key, 0) + count
    return found


def _logs(scenario: recording.Scenario, run: Run) -> Iterator[Difference]:
    ours = {log.query: log for log in run.logs}
    place = real_place(scenario)
    for log in scenario.logs:
        mine = ours.get(log.query)
        theirs = _answer(log, place)
        found = None if mine is None else _answer(mine, run.place)
        if theirs != found:
            yield Difference(scenario.scenario, f"log ?{log.query}", theirs, found)


def _answer(log: recording.Log, at: Place) -> list[Any]:
    body: Any = facts.mask(log.body, at.namespace, at.node)
    if log.status >= 400:
        try:
            answer = json.loads(body)
            body = {key: answer.get(key) for key in ("status", "reason", "code", "message")}
        except (ValueError, AttributeError):
            body = body.strip()
    return [log.status, body]
