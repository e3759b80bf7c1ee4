"""``servelab engine``: mock engines alone, told in the words of ``vllm serve``."""

import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pydantic
from click.core import ParameterSource

from modelserve import errors
from modelserve.cli import options
from modelserve.engines import arguments, vllm
from servelab.cli.engine_help import EngineCommand
from servelab.engine.alone import files, recipe, words
from servelab.engine.alone.recipe import Recipe
from servelab.engine.alone.running import Admin, Process
from servelab.engine.alone.settings import Settings
from servelab.engine.httpd import loops

_DEFAULTS = {name: field.default for name, field in Settings.model_fields.items()}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Port(click.ParamType[int | None]):
    """A port. Where a Service is called servelab-engine, Kubernetes sets …_PORT to its address."""

    name = "port"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        if isinstance(value, str) and value.startswith(("tcp://", "udp://")):
            return None
        return click.IntRange(0, 65_535).convert(value, param, ctx)


@click.command(
    cls=EngineCommand,
    context_settings={
        "ignore_unknown_options": True,
        "auto_envvar_prefix": "SERVELAB_ENGINE",
        # vLLM has short flags with an h in them, such as -dph.
        "help_option_names": ["--help"],
    },
    options_metavar="[MODEL] [OPTIONS]",
)
@click.option("--config", type=_FILE, help="YAML whose keys are flags.")
@click.option("--file", type=_FILE, help="YAML with a list of `engines`: many in one process.")
@click.option("--gpu", default=_DEFAULTS["gpu"], show_default=True, help="GPU product or alias.")
@options.time_scale
@click.option(
    "--host", default=_DEFAULTS["host"], show_default=True, help="Address; 0.0.0.0 in a container."
)
@click.option("--port", type=_Port(), help="0: any free one.  [default: the engine's own, 8000]")
@click.option(
    "--seed", type=int, default=_DEFAULTS["seed"], show_default=True, help="Of lengths and jitter."
)
@click.option(
    "--jitter",
    type=click.FloatRange(0, 0.5),
    default=_DEFAULTS["jitter"],
    show_default=True,
    help="Spread of a step's duration around the law.",
)
@click.option(
    "--start",
    type=click.Choice(["now", "cold"]),
    default=_DEFAULTS["start"],
    show_default=True,
    help="Serve at once, or go through weight load and warm-up first.",
)
@click.option("--storage-class", help="Where a cold start reads weights: nvme, s3, …")
@click.option("--warm-up-seconds", type=click.FloatRange(0, 86_400), help="Of a cold start.")
@click.option(
    "--batching",
    type=click.Choice(["continuous", "dynamic", "static", "none"]),
    default=_DEFAULTS["batching"].value,
    show_default=True,
    help="How requests share steps.",
)
@click.option(
    "--model-config", type=_FILE, help="The model's config.json, if the catalogue has none."
)
@click.option("--image", default="", help="Stand in for the container of that image.")
@click.option(
    "--drain-seconds",
    type=click.FloatRange(0, 86_400),
    default=_DEFAULTS["drain_seconds"],
    show_default=True,
    help="Real seconds that answers get after SIGTERM.",
)
@click.option(
    "--admin-listen",
    type=options.Address(),
    help="HOST:PORT of the admin endpoint.  [default: off]",
)
@click.option("--admin-token-file", type=_FILE, help="Its bearer token.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.pass_context
def engine(ctx: click.Context, /, **given: Any) -> None:
    """Run a mock engine, as `vllm serve MODEL` would a real one.

    \b
    Examples:
      servelab engine meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 32
      servelab engine llama-3.1-8b --gpu l4 --max-model-len 16k --start cold
    """
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.INFO)
    try:
        found = recipes(ctx)
        admin = _admin(given["admin_listen"], given["admin_token_file"])
    except errors.UsageError as error:
        raise click.UsageError(f"{error}{'; ' + error.hint if error.hint else ''}") from error
    except errors.InputError as error:
        raise click.UsageError(str(error)) from error
    try:
        code = loops.run(Process(found, admin, _print, _log).run())
    except errors.ModelServeError as error:
        raise click.ClickException(str(error)) from error
    ctx.exit(code)


def recipes(ctx: click.Context) -> list[Recipe]:
    """The engines that a parsed command line tells of. Raises InputError."""
    table = vllm.table()
    given, args = ctx.params, ctx.params["args"]
    base = {name: given[name] for name in _DEFAULTS if name in given}
    base["model_config_file"] = given["model_config"]
    if given["file"] is None:
        return [_single(ctx, args, base, given["config"], table)]
    if args or given["config"] is not None:
        raise errors.InputError("--file tells of all engines: leave out MODEL, its flags, --config")
    found = files.engines(given["file"], table, base)
    named = _named(
        [
            recipe.make(
                settings,
                settings.command or words.joined((), told.words, told.model),
                os.environ,
            )
            for told, settings in found
        ]
    )
    _check_ports(named)
    return named


def _single(
    ctx: click.Context,
    args: Sequence[str],
    base: Mapping[str, Any],
    config: Path | None,
    table: arguments.Table,
) -> Recipe:
    told = files.Told({}, None, ()) if config is None else files.config(config, table)
    ours = {str(param.name).upper() for param in ctx.command.params}
    from_environment = words.of_environment(table, os.environ, ours)
    given = {name: value for name, value in base.items() if _is_given(ctx, name, value)}
    try:
        settings = Settings(**{**base, **told.settings, **given})
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]).replace("_", "-")
        raise errors.InputError(f"{config}: {key}: {first['msg']}") from None
    own = args[1:] if args[:1] == ("serve",) else args
    if own and recipe.is_command(own, settings.image):
        if told.words or told.model or from_environment:
            raise errors.InputError(
                "a whole command line after -- leaves no room for flags of `vllm serve` from "
                "--config or the environment"
            )
        if any(word.partition("=")[0] == "--config" for word in own):
            raise errors.InputError("--config is only read before --")
        return recipe.make(settings, own, os.environ)
    named = [word for word in from_environment if word.startswith("--model=")]
    lower = [*told.words, *(word for word in from_environment if word not in named)]
    model = named[0].removeprefix("--model=") if named else told.model
    if recipe.names_model(own):
        model = None
    return recipe.make(settings, words.joined(own, lower, model), os.environ)


def _is_given(ctx: click.Context, name: str, value: Any) -> bool:
    """Whether an option's value comes from the command line or the environment."""
    source = ctx.get_parameter_source(name.removesuffix("_file"))
    return value is not None and source not in (
        ParameterSource.DEFAULT,
        ParameterSource.DEFAULT_MAP,
    )


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


def _named(recipes: Sequence[Recipe]) -> list[Recipe]:
    """Recipes whose names differ: a name that was not chosen gets a number."""
    found: list[Recipe] = []
    chosen = {each.settings.name for each in recipes}
    taken: set[str] = set()
    for each in recipes:
        name, number = each.name, 1
        while not each.settings.name and (name in taken or name in chosen):
            number += 1
            name = f"{each.name}-{number}"
        taken.add(name)
        found.append(replace(each, name=name))
    return found


def _admin(listen: tuple[str, int] | None, token_file: Path | None) -> Admin | None:
    if listen is None:
        if token_file is not None:
            raise errors.InputError(
                "--admin-token-file needs --admin-listen, such as 127.0.0.1:9000"
            )
        return None
    token = None if token_file is None else options.read_token(token_file)
    return Admin(*listen, token)


def _log(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _print(told: dict[str, object]) -> None:
    click.echo(json.dumps(told))
