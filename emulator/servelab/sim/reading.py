"""From the text of a scenario to a Scenario; what is wrong with it is told with its line."""

import importlib.resources
from collections.abc import Mapping, Sequence

import pydantic
import yaml

from modelserve import errors
from servelab.sim.scenario import Scenario

Place = tuple[str | int, ...]


def parse(text: str, name: str) -> Scenario:
    """Read a scenario. Raises InputError with ``name``, the line, and what to mend."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it cannot be read"
        raise errors.InputError(f"{name}{line}: no YAML: {what}") from error
    if not isinstance(data, Mapping):
        raise errors.InputError(f"{name}: a scenario is a mapping with `pools` and `models`")
    try:
        return Scenario.model_validate(data, extra="forbid")
    except pydantic.ValidationError as error:
        lines = _lines(node)
        found = [_sentence(name, each, lines) for each in error.errors(include_url=False)]
        raise errors.InputError("\n".join(dict.fromkeys(found[:5]))) from error


def packaged() -> Sequence[str]:
    """Names of the scenarios that come with the package."""
    folder = importlib.resources.files("servelab.sim").joinpath("scenarios")
    return sorted(each.name.removesuffix(".yaml") for each in folder.iterdir())


def packaged_text(name: str) -> str:
    """The text of one of them. Raises UnknownName."""
    if name not in packaged():
        raise errors.UnknownName("scenario", name, known=packaged())
    folder = importlib.resources.files("servelab.sim").joinpath("scenarios")
    return folder.joinpath(f"{name}.yaml").read_text()


def _lines(node: yaml.Node | None) -> Mapping[Place, int]:
    """The line of every key and item, by the way that leads there."""
    found: dict[Place, int] = {}

    def walk(at: yaml.Node, place: Place) -> None:
        if isinstance(at, yaml.MappingNode):
            for key, value in at.value:
                found[(*place, key.value)] = key.start_mark.line + 1
                walk(value, (*place, key.value))
        elif isinstance(at, yaml.SequenceNode):
            for number, value in enumerate(at.value):
                found[(*place, number)] = value.start_mark.line + 1
                walk(value, (*place, number))

    if node is not None:
        walk(node, ())
    return found


def _sentence(name: str, error: object, lines: Mapping[Place, int]) -> str:
    assert isinstance(error, dict)
    place: Place = tuple(error["loc"])
    known = place
    while known and known not in lines:
        known = known[:-1]
    line = f", line {lines[known]}" if known else ""
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        what = "there is no such field"
    elif error["type"] == "missing":
        what = "is missing"
    at = ".".join(str(part) for part in place)
    return f"{name}{line}: {at + ': ' if at else ''}{what[:1].lower()}{what[1:]}"
