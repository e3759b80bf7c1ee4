"""The command ``servelab``. A subcommand is imported when it is called, so help is quick."""

import importlib
from collections.abc import Mapping

import click

from modelserve import errors

# Name → (module:attribute, one line of help); the modules are imported only when needed.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "up": ("servelab.cli.up:up", "Start a local cluster with emulated GPU nodes."),
    "status": ("servelab.cli.running:status", "Show what runs, and where."),
    "down": ("servelab.cli.running:down", "Stop the local cluster."),
    "logs": ("servelab.cli.running:logs", "Print the log of one of its processes."),
    "restart": ("servelab.cli.running:restart", "Stop one of our processes and start it again."),
    "demo": ("servelab.cli.demo:demo", "From zero to N and back, with real traffic, in minutes."),
    "bench": ("servelab.cli.bench:bench", "Measure and report."),
    "emulator": ("servelab.cli.emulator:emulator", "Run the GPU node emulator (plays kubelet)."),
    "engine": ("servelab.cli.engine:engine", "Run one mock engine as a server."),
    "completion": ("servelab.cli.completion:completion", "Print a shell completion script."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or None if there is no such name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as failure:
            raise _missing(cmd_name, failure) from failure
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> object:
        """Run it; what we raise on purpose becomes one sentence and exit code 1."""
        try:
            return super().invoke(ctx)
        except errors.ModelServeError as failure:
            raise click.ClickException(str(failure)) from failure


def _missing(command: str, failure: ModuleNotFoundError) -> Exception:
    package = (failure.name or "").partition(".")[0]
    if package in ("", "modelserve", "servelab"):
        return failure  # our own mistake, not the user's installation
    return click.ClickException(
        f"`servelab {command}` needs the package {package}, which is not installed: "
        "pip install 'modelserve[lab]'"
    )


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="modelserve", prog_name="servelab")
def main() -> None:
    """Serve, scale and test large language models on a real Kubernetes, without a GPU.

    Start with `servelab up`, or see the whole story with `servelab demo`.
    """
