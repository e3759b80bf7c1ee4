"""``servelab completion``: click's own completion scripts."""

import click
from click import shell_completion


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL, e.g. `eval "$(servelab completion bash)"`."""
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    click.echo(kind(root.command, {}, "servelab", "_SERVELAB_COMPLETE").source())
