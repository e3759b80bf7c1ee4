"""``servelab engine``: mock engines alone, told in the words of ``vllm serve``."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from modelserve import errors
from modelserve.cli import options
from servelab.cli.engine_help import EngineCommand
from servelab.engine.alone import orders
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
        found = orders.recipes(order(ctx))
        admin = _admin(given["admin_listen"], given["admin_token_file"])
    except errors.UsageError as error:
        # As the engine's own parser ends: its usage, its message, exit code 2.
        _log(f"{error.told()}\n")
        ctx.exit(2)
    except errors.StartRefused as error:
        _log(f"{error}\n")
        ctx.exit(1)
    except errors.InputError as error:
        raise click.UsageError(str(error)) from error
    try:
        code = loops.run(Process(found, admin, _print, _log).run())
    except errors.ModelServeError as error:
        raise click.ClickException(str(error)) from error
    ctx.exit(code)


def order(ctx: click.Context) -> orders.Order:
    """What a parsed command line and the environment say."""
    given = ctx.params
    settings = {name: given[name] for name in _DEFAULTS if name in given}
    settings["model_config_file"] = given["model_config"]
    return orders.Order(
        words=given["args"],
        settings=settings,
        chosen={name for name, value in settings.items() if _is_given(ctx, name, value)},
        options={str(param.name).upper() for param in ctx.command.params},
        environment=os.environ,
        config=given["config"],
        file=given["file"],
    )


def _is_given(ctx: click.Context, name: str, value: Any) -> bool:
    """Whether an option's value comes from the command line or the environment."""
    source = ctx.get_parameter_source(name.removesuffix("_file"))
    return value is not None and source not in (
        ParameterSource.DEFAULT,
        ParameterSource.DEFAULT_MAP,
    )


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
