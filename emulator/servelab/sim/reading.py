"""From the text of a scenario to a Scenario; what is wrong with it is told with its line."""

import importlib.resources
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic
import yaml

from modelserve import errors
from servelab.sim import checking, knowing, literals
from servelab.sim.checking import Place
from servelab.sim.scenario import Scenario

# Complaints that are told at once.
MOST_TOLD = 5
FLOAT = "tag:yaml.org,2002:float"


class Loader(yaml.SafeLoader):
    """YAML in which 1e3 and 1.5e3 are numbers, as YAML 1.2 and kubectl have it."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """The value of a node; one that has none, a date of month 13, is told with its place."""
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            what = f"a value cannot be read: {error}"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark) from error


Loader.add_implicit_resolver(
    FLOAT, re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"), list("-+.0123456789")
)


@dataclass(frozen=True, slots=True)
class Document:
    """What a scenario's file holds, not judged yet, and the line of each of its parts."""

    name: str
    content: Mapping[str, Any]
    lines: Mapping[Place, int]


def parse(text: str, name: str) -> Scenario:
    """Read a scenario. Raises InputError with ``name``, the line, and what to mend."""
    return validate(load(text, name))


def load(text: str, name: str) -> Document:
    """Read the text as YAML. Raises InputError for what is none, or holds a key twice."""
    try:
        node = yaml.compose(text, Loader=Loader)
        content = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it cannot be read"
        raise errors.InputError(f"{name}{line}: no YAML: {what}") from error
    except RecursionError as error:  # brackets without end
        raise errors.InputError(f"{name}: no scenario: it is nested too deeply") from error
    except (OverflowError, ValueError) as error:  # an escape of no character
        raise errors.InputError(f"{name}: no YAML that can be read: {error}") from error
    if not isinstance(content, Mapping):
        raise errors.InputError(f"{name}: a scenario is a mapping with `pools` and `models`")
    return Document(name, content, _lines(node, name))


def validate(document: Document) -> Scenario:
    """Judge it. Raises InputError with up to five sentences, a line each."""
    given, found = _judged(document.content)
    told = [_sentence(document, each) for each in found if not _beside(document, each)]
    if given is None or told:
        raise errors.InputError("\n".join(list(dict.fromkeys(told))[:MOST_TOLD]))
    flaws = [sentence_at(document, flaw.place, flaw.message) for flaw in checking.flaws(given)]
    if flaws:
        raise errors.InputError("\n".join(flaws[:MOST_TOLD]))
    return given


def _judged(content: Mapping[str, Any]) -> tuple[Scenario | None, Sequence[Any]]:
    """The scenario, and what pydantic has against it."""
    mistaken = list(literals.mistaken(content))
    try:
        return Scenario.model_validate(content, extra="forbid"), mistaken
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False)
    # What follows from a text or a truth that was taken for a number is not told.
    places = [each["loc"] for each in mistaken]
    others = (each for each in found if not any(_around(each["loc"], at) for at in places))
    return None, [*mistaken, *others]


def _around(outer: Place, place: Place) -> bool:
    return place[: len(outer)] == outer


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


def _lines(node: yaml.Node | None, name: str) -> Mapping[Place, int]:
    """The line of every key and item, by the way that leads there. Raises InputError for twins."""
    found: dict[Place, int] = {}
    seen: set[int] = set()  # an anchor that many aliases point to is walked once

    def walk(at: yaml.Node, place: Place) -> None:
        if id(at) in seen:
            return
        seen.add(id(at))
        if isinstance(at, yaml.MappingNode):
            for key, value in at.value:
                here = (*place, str(key.value))
                line = key.start_mark.line + 1
                if here in found and key.value != "<<":
                    raise errors.InputError(
                        f"{name}, line {line}: {key.value} is there already, in line {found[here]}"
                    )
                found[here] = line
                walk(value, here)
        elif isinstance(at, yaml.SequenceNode):
            for number, value in enumerate(at.value):
                found[(*place, number)] = value.start_mark.line + 1
                walk(value, (*place, number))

    if node is not None:
        walk(node, ())
    return found


def _sentence(document: Document, error: Any) -> str:
    """What pydantic found, in our words."""
    place = _written(document.content, tuple(error["loc"]))
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error":
        place = (*place, *_named(error["input"], what))
    if error["type"] == "extra_forbidden":
        what = f"there is no such field{knowing.hint(place)}"
    elif error["type"] == "missing":
        what = "is missing"
    what = literals.sentence(error) or what
    return sentence_at(document, place, what)


def _named(given: Any, what: str) -> Place:
    """The field that a sentence about several is about: the first that it names, or its value."""
    if not isinstance(given, Mapping):
        return ()
    found = {key: re.search(rf"\b{re.escape(str(key))}\b", what) for key in given}
    places = [(match.start(), key) for key, match in found.items() if match]
    quoted = [
        (0, key) for key, value in given.items() if isinstance(value, str) and repr(value) in what
    ]
    return tuple(key for _, key in sorted(places or quoted)[:1])


def _beside(document: Document, error: Any) -> bool:
    """Whether it is of the member of a union that was not meant: a number's where fields stand."""
    if len(_written(document.content, error["loc"])) == len(error["loc"]):
        return False
    return bool(
        error["type"] == ("int_type" if isinstance(error["input"], Mapping) else "model_type")
    )


def _written(content: Any, place: Place) -> Place:
    """The way without the names that pydantic gives to members of a union."""
    found: list[str | int] = []
    at = content
    for number, part in enumerate(place):
        there = isinstance(at, Mapping) and part in at
        there = there or (isinstance(at, list) and isinstance(part, int) and part < len(at))
        if there:
            at = at[part]
        elif number < len(place) - 1 or (isinstance(part, str) and not part.isidentifier()):
            continue
        found.append(part)
    return tuple(found)


def sentence_at(document: Document, place: Place, what: str) -> str:
    """A sentence with the file, the line, and the way to what it is about."""
    # Lines are known by the text of keys; one that is a number or a date is told as such.
    known: Place = tuple(
        part if (*place[:at], part) in document.lines else str(part)
        for at, part in enumerate(place)
    )
    while known and known not in document.lines:
        known = known[:-1]
    line = f", line {document.lines[known]}" if known else ""
    at = ".".join(str(part) for part in place)
    return f"{document.name}{line}: {at + ': ' if at else ''}{what[:1].lower()}{what[1:]}"
