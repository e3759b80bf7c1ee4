"""YAML documents that remember on which line each value stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modelserve import errors

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A file's value, and the line of each place in it, from 1 on."""

    path: Path
    value: Any
    lines: Mapping[Place, int]

    def where(self, place: Place) -> str:
        """File and line of a place, or of the nearest one around it."""
        for length in range(len(place), -1, -1):
            line = self.lines.get(place[:length])
            if line is not None:
                return f"{self.path}:{line}"
        return str(self.path)

    def error(self, place: Place, sentence: str) -> errors.InputError:
        """An error about a place."""
        dotted = ".".join(str(part) for part in place)
        return errors.InputError(
            f"{self.where(place)}: {dotted + ': ' if dotted else ''}{sentence}"
        )


def read(path: Path) -> Document:
    """A file's document. Raises InputError if it cannot be read or is no YAML."""
    try:
        node = yaml.compose(path.read_text("utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InputError(f"{path} cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise errors.InputError(f"{path}{line}: no YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise errors.InputError(f"{path}: no YAML: {error}") from error
    if node is None:
        return Document(path, None, {})
    try:
        value = yaml.SafeLoader("").construct_document(node)
    except (yaml.YAMLError, ValueError) as error:
        raise errors.InputError(f"{path}: no YAML: {error}") from error
    return Document(path, value, dict(_lines(node, ())))


def _lines(node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    yield place, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            for found, line in _lines(value, inner):
                # A value may begin below its key: the key's line is where one looks.
                yield found, key.start_mark.line + 1 if found == inner else line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _lines(value, (*place, number))
