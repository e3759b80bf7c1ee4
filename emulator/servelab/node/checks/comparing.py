"""Compares a real kubelet's story of a pod with an emulated one."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelserve import errors
from servelab.node.checks import answers, facts, recording
from servelab.node.checks.runs import JITTER_S as JITTER_S
from servelab.node.checks.runs import Difference as Difference
from servelab.node.checks.runs import Place as Place
from servelab.node.checks.runs import Run as Run
from servelab.node.checks.runs import judged_s as judged_s
from servelab.node.checks.runs import real_place as real_place
from servelab.node.checks.runs import slack_s as slack_s

BACK_OFFS = ("CrashLoopBackOff", "ImagePullBackOff")


def compare(scenario: recording.Scenario, run: Run) -> list[Difference]:
    """All differences, in the order: facts, their order and times, events, logs."""
    real = real_changes(scenario)
    whole = _judged(real, facts.changes(run.updates, *_names(run.place)), judged_s(scenario))
    ours = _suited(real, whole, judged_s(scenario))
    found = list(_facts(scenario, real, ours))
    if not found:
        pairs = _pairs(real, ours)
        found += _order(scenario, pairs)
        found += _times(scenario, pairs)
    found += answers.events(scenario, run)
    found += answers.logs(scenario, run)
    found += answers.printed(scenario, run)
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


def seen_all(scenario: recording.Scenario, updates: Sequence[recording.Update], at: Place) -> bool:
    """Whether every fact of the recording has come, its back-offs too."""
    real = real_changes(scenario)
    ours = _judged(real, facts.changes(updates, at.namespace, at.node), judged_s(scenario))
    return all(_shown(found, ours.get(key, [])) is not None for key, found in real.items())


def _names(place: Place) -> tuple[str, str]:
    return place.namespace, place.node


def _judged(
    real: Mapping[str, list[facts.Change]], ours: dict[str, list[facts.Change]], until_s: float
) -> dict[str, list[facts.Change]]:
    """Ours, without what goes beyond the recording after its end."""
    kept = {}
    for key, found in ours.items():
        if key.endswith(facts.OPTIONAL) and all(c.value == "null" for c in real.get(key, ())):
            kept[key] = list(real.get(key, ()))  # Shortened recordings leave them out.
            continue
        early = sum(change.t_s <= until_s for change in found)
        kept[key] = found[: max(len(real.get(key, ())), early)]
    return kept


def _suited(
    real: Mapping[str, list[facts.Change]],
    ours: Mapping[str, list[facts.Change]],
    until_s: float,
) -> dict[str, list[facts.Change]]:
    """Ours, of what goes beyond the recording's end only as much as suits it.

    A value that the recording shows for a moment, and ours does not, makes ours reach further.
    """
    return {key: _as_long(real.get(key, ()), found, until_s) for key, found in ours.items()}


def _as_long(
    real: Sequence[facts.Change], ours: list[facts.Change], until_s: float
) -> list[facts.Change]:
    least = sum(change.t_s <= until_s for change in ours)
    lengths = range(len(ours), least - 1, -1)
    return next((ours[:n] for n in lengths if _aligned(real, ours[:n])), ours)


def _aligned(
    real: Sequence[facts.Change], ours: Sequence[facts.Change]
) -> tuple[list[facts.Change], list[facts.Change]] | None:
    """Both without what chance shows in only one of them; None if they differ in more."""
    # Whether a back-off is told before something else happens is chance, as when it is told.
    return _shown(real, ours) or _shown(*_unheld(real, ours))


def _shown(
    real: Sequence[facts.Change], ours: Sequence[facts.Change]
) -> tuple[list[facts.Change], list[facts.Change]] | None:
    """Both without what only one of them shows for a moment; None if they differ in more."""
    kept = facts.without_blips(ours, [change.value for change in real])
    if kept is not None:
        return list(real), kept
    theirs = facts.without_blips(real, [change.value for change in ours])
    return None if theirs is None else (theirs, list(ours))


def _unheld(
    real: Sequence[facts.Change], ours: Sequence[facts.Change]
) -> tuple[Sequence[facts.Change], Sequence[facts.Change]]:
    """Both without their back-offs, if one of them tells one more than the other."""
    theirs, mine = ([c for c in found if not _is_back_off(c)] for found in (real, ours))
    held = (len(real) - len(theirs)) - (len(ours) - len(mine))
    return (theirs, mine) if abs(held) == 1 else (real, ours)


def _is_back_off(change: facts.Change) -> bool:
    return change.key.endswith(" state") and any(f'"{why}"' in change.value for why in BACK_OFFS)


def _facts(
    scenario: recording.Scenario,
    real: Mapping[str, list[facts.Change]],
    ours: Mapping[str, list[facts.Change]],
) -> Iterator[Difference]:
    for key in sorted({*real, *ours}):
        theirs, mine = real.get(key, []), ours.get(key, [])
        if _aligned(theirs, mine) is None and not _held_back(key, real, ours):
            yield Difference(scenario.scenario, f"status: {key}", _story(theirs), _story(mine))


def _held_back(
    key: str, real: Mapping[str, list[facts.Change]], ours: Mapping[str, list[facts.Change]]
) -> bool:
    """Whether one side alone tells, with a last back-off, the end before it: as a last state."""
    theirs, mine = (_before_back_off(key, found) for found in (real, ours))
    return _aligned(theirs, mine) is not None


def _before_back_off(key: str, found: Mapping[str, list[facts.Change]]) -> list[facts.Change]:
    changes = found.get(key, [])
    states = found.get(f"{key.removesuffix(' lastState')} state", [])
    if not (changes and states and key.endswith(" lastState") and _is_back_off(states[-1])):
        return changes
    return changes[:-1] if changes[-1].number == states[-1].number else changes


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


def _told_by_chance(pairs: Sequence[tuple[facts.Change, facts.Change]]) -> set[tuple[str, int]]:
    """Containers and updates in which a back-off is told.

    A kubelet tells it as it begins or as it ends, some 10 s later, by whether one more sync comes
    in between: of ten recordings of one pod three were of the first kind.
    """
    return {(_owner(theirs), theirs.number) for theirs, _ in pairs if _is_back_off(theirs)}


def _owner(change: facts.Change) -> str:
    """The container that the fact is about, or the kind of fact."""
    return change.key.rpartition(" ")[0]


def _order(
    scenario: recording.Scenario, pairs: Sequence[tuple[facts.Change, facts.Change]]
) -> Iterator[Difference]:
    """What came strictly after must not come before; what came at once may come in any order."""
    ordered = sorted(pairs, key=lambda pair: (pair[0].number, pair[1].number))
    chance = _told_by_chance(pairs)
    kept = [pair for pair in ordered if (_owner(pair[0]), pair[0].number) not in chance]
    for before, after in itertools.pairwise(kept):
        if before[1].number > after[1].number:
            names = [f"{pair[0].key} = {pair[0].value}" for pair in (before, after)]
            yield Difference(scenario.scenario, "order", names, names[::-1])


def _times(
    scenario: recording.Scenario, pairs: Sequence[tuple[facts.Change, facts.Change]]
) -> Iterator[Difference]:
    """Times since the creation, or, since a chain of waits adds its chances, since the fact before.

    Each step of a kubelet waits for its next relist: how long is chance, and the next step has it.
    """
    chance = _told_by_chance(pairs)
    offset_s, number, before_s = 0.0, -1, 0.0
    for theirs, mine in sorted(pairs, key=lambda pair: pair[0].number):
        if theirs.number != number:
            number, before_s = theirs.number, offset_s
        slack, late_s = slack_s(scenario, theirs.t_s), mine.t_s - theirs.t_s
        if (_owner(theirs), theirs.number) in chance:
            continue
        offset_s = late_s
        if abs(late_s) > slack and abs(late_s - before_s) > JITTER_S:
            where = f"time: {theirs.key} = {theirs.value}"
            yield Difference(scenario.scenario, where, round(theirs.t_s, 1), round(mine.t_s, 1))
