"""Command groups that import a subcommand when it is called, so that help is quick."""

import difflib
import errno
import importlib
import io
import signal
import sys
from collections.abc import Mapping
from typing import Any

import click
from click import core, shell_completion

from modelserve import errors

# Name → (module:attribute, one line of help).
Table = Mapping[str, tuple[str, str]]

_OURS = ("", "modelserve", "servelab")
# What a file system answers to whoever may not write there.
_REFUSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT})
# What a shell says of a command that Ctrl-C ended.
INTERRUPTED = 128 + signal.SIGINT


class Interrupted(click.ClickException):
    """Ctrl-C came where more is to be said of it than that."""

    exit_code = INTERRUPTED


class LazyGroup(click.Group):
    """A group over a table of commands; ``extra`` is what to install where a package is missing."""

    def __init__(self, *arguments: Any, table: Table, extra: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.table = table
        self._extra = extra

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or None if there is no such name."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as failure:
            raise self._missing(ctx, cmd_name, failure) from failure
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; for a name that there is not, with the nearest ones that there are."""
        near = difflib.get_close_matches(args[0], self.table, n=2) if args else []
        if near and args[0] not in self.table:
            said = f"No such command {args[0]!r}; did you mean {' or '.join(near)}?"
            raise click.UsageError(said, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run it; what we raise on purpose becomes one sentence and exit code 1, bad input 2.

        Ctrl-C, where the command does not take it itself, ends with 130. Characters that the
        locale's encoding lacks are printed as question marks.
        """
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except click.BadParameter as failure:
            _name_variable(failure)
            raise
        except errors.InputError as failure:
            raise click.UsageError(str(failure)) from failure
        except errors.ModelServeError as failure:
            raise click.ClickException(str(failure)) from failure
        except OSError as failure:
            if failure.errno == errno.ENOSPC:
                raise click.ClickException("the disk is full: not all was written") from failure
            if failure.filename is None or failure.errno not in _REFUSED:
                raise
            raise click.ClickException(f"{failure.filename}: {failure.strerror}") from failure
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)

    def _missing(self, ctx: click.Context, name: str, failure: ModuleNotFoundError) -> Exception:
        package = (failure.name or "").partition(".")[0]
        if package in _OURS or not self._extra:
            return failure  # our own mistake, not the user's installation
        return click.ClickException(
            f"`{ctx.info_name} {name}` needs the package {package}, which is not installed: "
            f"pip install '{self._extra}'"
        )


def _name_variable(failure: click.BadParameter) -> None:
    """Let a value that came from the environment be told by its variable's name, not its flag's."""
    ctx, param = failure.ctx, failure.param
    if ctx is None or param is None or param.name is None:
        return
    if ctx.get_parameter_source(param.name) is core.ParameterSource.ENVIRONMENT:
        own = param.envvar if isinstance(param.envvar, str) else None
        name = own or f"{ctx.auto_envvar_prefix}_{param.name.upper()}"
        failure.param_hint = f"environment variable {name}"


def completion(program: str) -> click.Command:
    """The command that prints a program's shell completion script."""

    @click.command("completion")
    @click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
    @click.pass_context
    def print_script(ctx: click.Context, shell: str) -> None:
        kind = shell_completion.get_completion_class(shell)
        assert kind is not None, f"click knows no shell {shell}"
        root = ctx.find_root().command
        script = kind(root, {}, program, f"_{program.upper()}_COMPLETE")
        # Not .source(): for bash that would first look which version of it is installed.
        click.echo(script.source_template % script.source_vars())

    print_script.help = (
        f"Print the completion script for SHELL, e.g. `source <({program} completion bash)`."
    )
    return print_script
