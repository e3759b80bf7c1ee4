"""From what flags, environment and files say together to the recipes of engines."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pydantic

from modelserve import errors
from modelserve.engines import arguments, vllm
from servelab.engine.alone import files, recipe, words
from servelab.engine.alone.recipe import Recipe
from servelab.engine.alone.settings import Settings


@dataclass(frozen=True, slots=True)
class Order:
    """What was told. ``words`` are the model and flags of ``vllm serve``, or a whole command line.

    ``settings`` are all of ours by field, ``chosen`` those that are no mere defaults; ``options``
    the names of ours as they stand in variables ``SERVELAB_ENGINE_…``.
    """

    words: Sequence[str]
    settings: Mapping[str, Any]
    chosen: Collection[str]
    options: Collection[str]
    environment: Mapping[str, str]
    config: Path | None = None
    file: Path | None = None


def recipes(order: Order) -> list[Recipe]:
    """The engines that were told of. Raises InputError."""
    table = vllm.table()
    if order.file is None:
        return [_single(order, table)]
    if order.words or order.config is not None:
        raise errors.InputError("--file tells of all engines: leave out MODEL, its flags, --config")
    found = files.engines(order.file, table, order.settings)
    named = _named([_listed(told, settings, order.environment) for told, settings in found])
    _check_ports(named)
    return named


def _listed(told: files.Told, settings: Settings, environment: Mapping[str, str]) -> Recipe:
    """One engine of a file of many."""
    line = settings.command or words.joined((), told.words, told.model)
    return recipe.make(settings, line, environment)


def _single(order: Order, table: arguments.Table) -> Recipe:
    told = files.Told({}, None, ())
    if order.config is not None:
        told = files.config(order.config, table)
    from_environment = words.of_environment(table, order.environment, order.options)
    settings = _settings(order, told)
    own = order.words[1:] if tuple(order.words[:1]) == ("serve",) else order.words
    if own and recipe.is_command(own, settings.image):
        _check_alone(own, bool(told.words or told.model or from_environment))
        return recipe.make(settings, own, order.environment)
    named = [word for word in from_environment if word.startswith("--model=")]
    lower = [*told.words, *(word for word in from_environment if word not in named)]
    model = named[0].removeprefix("--model=") if named else told.model
    if recipe.names_model(own):
        model = None
    return recipe.make(settings, words.joined(own, lower, model), order.environment)


def _settings(order: Order, told: files.Told) -> Settings:
    """Flags count before the file, that before the defaults. Raises InputError."""
    chosen = {name: order.settings[name] for name in order.chosen}
    try:
        return Settings(**{**order.settings, **told.settings, **chosen})
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]).replace("_", "-")
        raise errors.InputError(f"{order.config}: {key}: {first['msg']}") from None


def _check_alone(line: Sequence[str], has_more: bool) -> None:
    if has_more:
        raise errors.InputError(
            "a whole command line after -- leaves no room for flags of `vllm serve` from "
            "--config or the environment"
        )
    if any(word.partition("=")[0] == "--config" for word in line):
        raise errors.InputError("--config is only read before --")


def _check_ports(found: Sequence[Recipe]) -> None:
    """Sockets that do not listen yet would share a port without a word."""
    taken: dict[tuple[str, int], str] = {}
    for each in found:
        address = (each.settings.host, each.port)
        if each.port and address in taken:
            raise errors.InputError(
                f"{taken[address]} and {each.name} both want port {each.port}: give one another"
            )
        taken[address] = each.name


def _named(found: Sequence[Recipe]) -> list[Recipe]:
    """Recipes whose names differ: a name that was not chosen gets a number."""
    renamed: list[Recipe] = []
    chosen = {each.settings.name for each in found}
    taken: set[str] = set()
    for each in found:
        name, number = each.name, 1
        while not each.settings.name and (name in taken or name in chosen):
            number += 1
            name = f"{each.name}-{number}"
        taken.add(name)
        renamed.append(replace(each, name=name))
    return renamed
