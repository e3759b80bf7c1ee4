"""``modelserve completion``: a shell completion script."""

import click
from click import shell_completion

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "modelserve"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    For bash: source <(modelserve completion bash).
    """
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None, f"click knows no shell {shell}"
    root = ctx.find_root().command
    script = kind(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE")
    # Not .source(): for bash that would first look which version of it is installed.
    click.echo(script.source_template % script.source_vars())
