"""The command ``modelserve``, also ``kubectl modelserve``."""

import click

from modelserve.cli import lazy

COMMANDS: lazy.Table = {
    "operator": ("modelserve.cli.operator:operator", "Run the operator."),
    "gateway": ("modelserve.cli.gateway:gateway", "Run the gateway, one address for all models."),
    "wake": ("modelserve.cli.wake:wake", "Wake a model by hand, and keep it awake."),
    "history": ("modelserve.cli.history:history", "Show the last changes of the replica count."),
    "completion": ("modelserve.cli:completion", "Print a shell completion script."),
}

completion = lazy.completion("modelserve")


@click.group(
    cls=lazy.LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="modelserve", prog_name="modelserve")
def main() -> None:
    """Serve large language models on Kubernetes, from zero to N replicas and back.

    `kubectl apply` a ModelServe, then use `kubectl get modelserve` and the commands below.
    """
