"""The command ``modelserve``, also ``kubectl modelserve``. A subcommand is imported when called."""

import importlib
from collections.abc import Mapping

import click

from modelserve import errors

# Name → (module:attribute, one line of help).
COMMANDS: Mapping[str, tuple[str, str]] = {
    "operator": ("modelserve.cli.operator:operator", "Run the operator."),
    "gateway": ("modelserve.cli.gateway:gateway", "Run the gateway, one address for all models."),
    "wake": ("modelserve.cli.wake:wake", "Wake a model by hand, and keep it awake."),
    "history": ("modelserve.cli.history:history", "Show the last changes of the replica count."),
    "completion": ("modelserve.cli.completion:completion", "Print a shell completion script."),
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
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> object:
        """Run it; what we raise on purpose becomes one sentence and exit code 1, bad input 2."""
        try:
            return super().invoke(ctx)
        except errors.InputError as failure:
            raise click.UsageError(str(failure)) from failure
        except errors.ModelServeError as failure:
            raise click.ClickException(str(failure)) from failure


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="modelserve", prog_name="modelserve")
def main() -> None:
    """Serve large language models on Kubernetes, from zero to N replicas and back.

    `kubectl apply` a ModelServe, then use `kubectl get modelserve` and the commands below.
    """
