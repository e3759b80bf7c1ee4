"""Options that several commands share, and how their values are read."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from modelserve.api import names

Function = TypeVar("Function", bound=Callable[..., Any])

# Every long-running process also reads its options from the environment: MODELSERVE_NAMESPACE …
ENVIRONMENT = {"auto_envvar_prefix": "MODELSERVE"}
_OUTPUT = ("-o", "--output")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")


class Address(click.ParamType[tuple[str, int]]):
    """``HOST:PORT``; port 0 takes a free one."""

    name = "host:port"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, colon, port = str(value).rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            self.fail(f"{value!r} is no address; write for instance 127.0.0.1:8080", param, ctx)
        return host.strip("[]") or "0.0.0.0", int(port)


class Duration(click.ParamType[float]):
    """``90s``, ``30m``, ``1h30m``: seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.match(str(value))
        if not value or match is None:
            self.fail(f"{value!r} is no duration; write for instance 30m or 1h30m", param, ctx)
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return hours * 3600.0 + minutes * 60.0 + seconds


def printed(
    json_help: str = "JSON: one object.", *, plain: str = "table", names: Sequence[str] = _OUTPUT
) -> Callable[[Function], Function]:
    """``-o json`` and its alias ``--json`` for a command that prints data: it gets ``as_json``.

    ``plain`` is what it prints else; ``names`` where ``--output`` is already another option's.
    """

    def decorate(function: Function) -> Function:
        @click.option(
            *names,
            "output_format",
            type=click.Choice([plain, "json"]),
            default=plain,
            show_default=True,
            help=json_help,
        )
        @click.option("--json", "json_flag", is_flag=True, help="The same as -o json.")
        @functools.wraps(function)
        def call(*args: Any, output_format: str, json_flag: bool, **given: Any) -> Any:
            return function(*args, as_json=json_flag or output_format == "json", **given)

        return cast(Function, call)

    return decorate


def kubeconfig(function: Function) -> Function:
    """``--kubeconfig``."""
    return click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False),
        help="Left out: the pod's service account, $KUBECONFIG, or ~/.kube/config.",
    )(function)


def namespace_of_object(function: Function) -> Function:
    """``-n``, the namespace of the object a command is about."""
    return click.option(
        "-n",
        "--namespace",
        default=None,
        help="Namespace of the ModelServe; left out: the kubeconfig's, else default.",
    )(function)


def time_scale(function: Function) -> Function:
    """``--time-scale``."""
    return click.option(
        "--time-scale",
        type=click.FloatRange(0, 100_000, min_open=True),
        default=1.0,
        show_default=True,
        callback=_finite,
        help="Emulated seconds per real second; the same for all processes.",
    )(function)


def surroundings(function: Function) -> Function:
    """Where a long-running process lives: cluster, namespace, time scale."""
    namespace = click.option(
        "--namespace",
        default=names.SYSTEM_NAMESPACE,
        show_default=True,
        help="Where our own processes keep their Leases.",
    )
    return kubeconfig(namespace(time_scale(function)))


def process(function: Function) -> Function:
    """The options of operator and gateway."""
    token_file = click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        required=True,
        help="The token that operator and gateways share.",
    )
    return surroundings(token_file(function))


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    # No comparison refuses NaN.
    if not math.isfinite(value):
        raise click.BadParameter("it must be a number")
    return value


def read_token(path: Path) -> str:
    """The token in a file. Raises UsageError if there is none."""
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"the token file {path} cannot be read: {error}") from error
    if not token:
        raise click.UsageError(f"the token file {path} is empty")
    return token
