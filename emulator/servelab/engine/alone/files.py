"""Files that tell of engines: one mapping of flags, or a list of engines, each such a mapping."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from modelserve import errors
from modelserve.engines import arguments, vllm
from servelab.engine.alone import lined, words
from servelab.engine.alone.settings import Settings

# What a key of a file is called where it is not the field's own name.
_FIELDS = {
    name.replace("_", "-"): name
    for name in Settings.model_fields
    if name not in ("command", "name", "model_config_file")
} | {"model-config": "model_config_file"}
_LISTED = {"command": "command", "name": "name"}


@dataclass(frozen=True, slots=True)
class Told:
    """What a mapping says: settings by field, the model, and words of ``vllm serve``."""

    settings: Mapping[str, Any]
    model: str | None
    words: tuple[str, ...]


def config(path: Path, table: arguments.Table) -> Told:
    """A file of flags, as for ``vllm serve --config``. Raises InputError with file and line."""
    document = lined.read(path)
    return _told(document, (), document.value if document.value is not None else {}, table, _FIELDS)


def engines(
    path: Path, table: arguments.Table, base: Mapping[str, Any]
) -> list[tuple[Told, Settings]]:
    """A file with a list ``engines``; ``base`` are settings for what an entry does not say.

    Raises InputError with file and line.
    """
    document = lined.read(path)
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("engines"), list):
        raise document.error((), "it must hold a list `engines`")
    for key in value:
        if key != "engines":
            raise document.error((str(key),), "unknown; the file holds `engines` alone")
    if not value["engines"]:
        raise document.error(("engines",), "name at least one engine")
    found = [_engine(document, number, table, base) for number in range(len(value["engines"]))]
    _check_names(document, [settings.name for _, settings in found])
    return found


def _engine(
    document: lined.Document, number: int, table: arguments.Table, base: Mapping[str, Any]
) -> tuple[Told, Settings]:
    place = ("engines", number)
    entry = document.value["engines"][number]
    told = _told(document, place, entry, table, _FIELDS | _LISTED)
    if "command" in told.settings and (told.words or told.model):
        raise document.error((*place, "command"), "a whole command line leaves no room for flags")
    try:
        return told, Settings(**{**base, **told.settings})
    except pydantic.ValidationError as error:
        raise _invalid(document, place, error) from None


def _told(
    document: lined.Document,
    place: lined.Place,
    value: Any,
    table: arguments.Table,
    fields: Mapping[str, str],
) -> Told:
    if not isinstance(value, dict):
        raise document.error(place, "it must be a mapping of flags, such as `max-num-seqs: 32`")
    settings: dict[str, Any] = {}
    said: list[str] = []
    model = None
    for key, each in value.items():
        name = str(key).replace("_", "-")
        if name in fields:
            settings[fields[name]] = each
        elif name == "model":
            model = str(each)
        else:
            try:
                told = words.of_value(table, name, each)
                arguments.parse(table, told, vllm.PROGRAM, vllm.USAGE)
            except errors.InputError as error:
                raise document.error((*place, str(key)), str(error)) from error
            said += told
    return Told(settings, model, tuple(said))


def _invalid(
    document: lined.Document, place: lined.Place, error: pydantic.ValidationError
) -> errors.InputError:
    """The first thing that is wrong, under the key that the file has."""
    first = error.errors()[0]
    field = str(first["loc"][0])
    keys = {name: key for key, name in (_FIELDS | _LISTED).items()}
    return document.error((*place, keys.get(field, field)), str(first["msg"]))


def _check_names(document: lined.Document, names: list[str]) -> None:
    for number, name in enumerate(names):
        if name and name in names[:number]:
            raise document.error(("engines", number, "name"), f"{name!r} is taken already")
