"""Flags of ``vllm serve`` from a file or the environment, as words of its command line.

As in ``vllm serve --config``: the keys are the flags without dashes. What comes later counts, so
words go in this order: file, environment, command line.
"""

import difflib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from modelserve import errors
from modelserve.engines import arguments

PREFIX = "SERVELAB_ENGINE_"
# A Service called servelab-engine puts these into the environment of every pod of its namespace.
_SERVICE_LINK = re.compile(r"(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP)(_.*)?)$")
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def of_value(table: arguments.Table, key: str, value: Any) -> list[str]:
    """The words of one key of a file: ``true`` is a bare flag, ``false`` its negation.

    Raises InputError for a flag that the table does not have.
    """
    flag = "--" + key.replace("_", "-")
    argument = table.find(flag)
    if argument is None:
        raise errors.InputError(f"unknown flag {key!r}{_suggestion(table, key)}")
    if value is None:
        return []
    if isinstance(value, bool):
        if value:
            return [flag]
        return [f"--no-{flag[2:]}"] if argument.negatives else []
    if isinstance(value, list):
        return [flag, *(str(item) for item in value)] if value else []
    if isinstance(value, dict):
        return [flag, json.dumps(value)]
    return [f"{flag}={value}"]


def of_environment(
    table: arguments.Table, environment: Mapping[str, str], ours: Collection[str]
) -> list[str]:
    """The words of all variables ``SERVELAB_ENGINE_<FLAG>``; ``ours`` are names read elsewhere.

    Raises InputError for a variable that is no flag, or a switch that is neither true nor false.
    """
    found: list[str] = []
    for name, text in sorted(environment.items()):
        rest = name.removeprefix(PREFIX)
        if rest == name or rest in ours or _SERVICE_LINK.match(rest):
            continue
        key = rest.lower().replace("_", "-")
        argument = table.find(f"--{key}")
        try:
            found += of_value(table, key, _typed(argument, text))
        except errors.InputError as error:
            raise errors.InputError(f"environment variable {name}: {error}") from error
    return found


def joined(own: Sequence[str], before: Iterable[str], model: str | None) -> list[str]:
    """A command line of the words that count least, then its own, the model first."""
    lower = list(before)
    if model is not None:
        return [model, *lower, *own]
    if own and not own[0].startswith("-"):
        return [own[0], *lower, *own[1:]]
    return [*lower, *own]


def _typed(argument: arguments.Argument | None, text: str) -> Any:
    """A variable's text as a file would have it."""
    if argument is None:
        return text
    if argument.is_switch:
        value = _WORDS.get(text.strip().lower())
        if value is None:
            raise errors.InputError(f"{text!r} is neither true nor false")
        return value
    return shlex.split(text) if argument.nargs in ("+", "*") else text


def _suggestion(table: arguments.Table, key: str) -> str:
    known = [flag[2:] for each in table.arguments for flag in each.flags if flag[:2] == "--"]
    near = difflib.get_close_matches(key.replace("_", "-"), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
