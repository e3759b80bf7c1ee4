"""What else an outcome follows from: this package's code, and what stands in the traces."""

import functools
import hashlib
import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import Any

from modelserve import errors
from servelab.sweep import task

PACKAGES = ("modelserve", "servelab")
# Keys of a scenario whose values name files.
FILES = ("trace", "rates", "lengths")


def digest(contents: Iterable[Mapping[str, Any]], lines: task.Beside) -> str:
    """A digest of code and traces. Raises InputError for a trace that cannot be read."""
    found = hashlib.sha256(code().encode())
    names = {name for content in contents for name in _names(content.get("models"))}
    for name in sorted(names):
        path = lines.path(name)
        found.update(name.encode() + b"\0")
        if path is None:
            continue  # the package's own, which are part of the code
        try:
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise errors.InputError(
                f"{lines.scenario_name} names the trace {path}, which cannot be read: "
                f"{error.strerror}"
            ) from error
    return found.hexdigest()


@functools.cache
def code() -> str:
    """A digest of every module and data file of our packages."""
    found = hashlib.sha256()
    for package in PACKAGES:
        for name, file in sorted(_files(importlib.resources.files(package), package)):
            found.update(name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        path = f"{name}/{each.name}"
        if each.is_dir():
            yield from () if each.name == "__pycache__" else _files(each, path)
        elif each.name.endswith((".py", ".yaml", ".json", ".csv", ".gz")):
            yield path, each


def _names(content: Any) -> Iterator[str]:
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key in FILES and isinstance(value, str):
                yield value
            yield from _names(value)
    elif isinstance(content, list):
        for each in content:
            yield from _names(each)
