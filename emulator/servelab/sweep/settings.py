"""Which fields of a scenario a sweep sets, and to what."""

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from modelserve import errors
from servelab.sim import knowing, reading
from servelab.sim.checking import Place

# Where a field of a model's own spec is, when there is one model and nobody says which.
ONLY_MODEL: Place = ("models", 0, "spec")


@dataclass(frozen=True, slots=True)
class Setting:
    """A field by its way from the top, the name a person gave it, and the values it takes."""

    name: str
    place: Place
    values: Sequence[Any]


def parse(text: str, content: Mapping[str, Any]) -> Setting:
    """``scaling.cooldownSeconds=60,300``: parts of the way with dots, values as YAML has them.

    The way begins at the top of the scenario (``models.llama-8b.spec.scaling.minReplicas``; items
    of lists by number or name), or in the one model's spec. Raises InputError.
    """
    name, equals, values = text.partition("=")
    name = name.strip()
    if not equals or not name or not values.strip():
        raise errors.InputError(
            f"--set {text}: write FIELD=VALUE,VALUE, for instance scaling.minReplicas=0,1,2"
        )
    try:
        found = yaml.load(f"[{values}]", Loader=reading.Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise errors.InputError(f"--set {text}: the values cannot be read as YAML") from error
    if not isinstance(found, list) or not found:
        raise errors.InputError(f"--set {text}: names no value")
    return Setting(name, _place(name, content), tuple(found))


def applied(content: Mapping[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """The content with the field set; what leads there is made. ``content`` stays as it was."""
    changed: dict[str, Any] = copy.deepcopy(dict(content))
    at: Any = changed
    for part, following in itertools.pairwise(place):
        if isinstance(at, dict) and not isinstance(at.get(part), dict | list):
            at[part] = [] if isinstance(following, int) else {}
        at = at[part]
    at[place[-1]] = copy.deepcopy(value)
    return changed


def _place(name: str, content: Mapping[str, Any]) -> Place:
    parts = name.split(".")
    if parts[0] not in knowing.fields(()):
        if parts[0] in knowing.fields(ONLY_MODEL):
            models = content.get("models")
            if isinstance(models, Sequence) and len(models) > 1:
                raise errors.InputError(
                    f"--set {name}: there are {len(models)} models; write models.NAME.spec.{name}"
                )
            return _within(name, parts, ONLY_MODEL, content)
        if parts[0] in ("policy", "policies"):
            raise errors.InputError(f"--set {name}: policies are compared with --policies")
    return _within(name, parts, (), content)


def _within(name: str, parts: Sequence[str], start: Place, content: Mapping[str, Any]) -> Place:
    place, at = start, _at(content, start)
    for part in parts:
        if isinstance(at, list):
            step: str | int = _item(name, part, at)
        else:
            step = part
            known = knowing.fields(place)
            if known and step not in known:
                way = ".".join(map(str, (*place, step)))
                raise errors.InputError(
                    f"--set {name}: {way}: there is no such field{knowing.hint((*place, step))}"
                )
        place = (*place, step)
        at = _at(content, place)
    if isinstance(place[-1], int) and place[0] == "models" and len(place) == 2:
        raise errors.InputError(f"--set {name}: names a whole model; name one of its fields")
    return place


def _item(name: str, part: str, items: Sequence[Any]) -> int:
    names = [each.get("name") if isinstance(each, Mapping) else None for each in items]
    if part in names:
        return names.index(part)
    if part.isdecimal() and int(part) < len(items):
        return int(part)
    named = [str(each) for each in names if each]
    raise errors.InputError(
        f"--set {name}: there is no item {part}; "
        + (f"there are {', '.join(named)}" if named else f"there are 0 to {len(items) - 1}")
    )


def _at(content: Any, place: Place) -> Any:
    """What stands there; None where nothing does."""
    at = content
    for part in place:
        if isinstance(at, Mapping):
            at = at.get(part)
        elif isinstance(at, list) and isinstance(part, int) and part < len(at):
            at = at[part]
        else:
            return None
    return at
