"""The points of a sweep: every combination of the values, under every policy, with every seed."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from modelserve import errors
from servelab.sim import reading, scenario
from servelab.sweep import settings

MOST_POINTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One run: what was set (by the names a person gave), under which policy, with which seed.

    ``content`` is the whole scenario as data; points that differ only in policy or seed share it.
    """

    values: Mapping[str, Any]
    content: Mapping[str, Any]
    policy: str
    seed: int

    def key(self, surroundings: str) -> str:
        """A digest of everything the outcome follows from; ``surroundings`` are code and traces."""
        whole = [self.content, self.policy, self.seed, surroundings]
        text = json.dumps(whole, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def points(
    document: reading.Document,
    given: Sequence[settings.Setting],
    policies: Sequence[str],
    seeds: int = 1,
) -> Sequence[Point]:
    """All points in order: the last setting varies first, then policies, then seeds.

    Seeds count up from the scenario's own. Raises InputError for a combination that is no scenario.
    """
    _check(given, policies, seeds)
    return list(_points(document, given, policies, seeds))


def _points(
    document: reading.Document,
    given: Sequence[settings.Setting],
    policies: Sequence[str],
    seeds: int,
) -> Iterator[Point]:
    for values in itertools.product(*(each.values for each in given)):
        content: Mapping[str, Any] = document.content
        for setting, value in zip(given, values, strict=True):
            content = settings.applied(content, setting.place, value)
        named = {setting.name: value for setting, value in zip(given, values, strict=True)}
        found = _validated(replace(document, content=content), named)
        for policy in policies:
            for number in range(seeds):
                yield Point(named, content, policy, found.seed + number)


def _validated(document: reading.Document, named: Mapping[str, Any]) -> scenario.Scenario:
    try:
        return reading.validate(document)
    except errors.InputError as error:
        if not named:
            raise
        said = " ".join(f"{name}={value}" for name, value in named.items())
        raise errors.InputError(f"with --set {said}: {error}") from error


def _check(given: Sequence[settings.Setting], policies: Sequence[str], seeds: int) -> None:
    places = [each.place for each in given]
    for number, place in enumerate(places):
        if any(place[: len(other)] == other for other in places[:number]):
            raise errors.InputError(f"--set {given[number].name}: is set twice")
    count = len(policies) * seeds
    for each in given:
        count *= len(each.values)
    if count > MOST_POINTS:
        raise errors.InputError(f"{count} points are too many; {MOST_POINTS} at most")
