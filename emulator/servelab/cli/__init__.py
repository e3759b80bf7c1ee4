"""The command ``servelab``."""

import click

from modelserve.cli import lazy

COMMANDS: lazy.Table = {
    "up": ("servelab.cli.up:up", "Start a local cluster with emulated GPU nodes."),
    "status": ("servelab.cli.cluster:status", "Show what runs, and where."),
    "down": ("servelab.cli.cluster:down", "Stop the local cluster."),
    "logs": ("servelab.cli.cluster:logs", "Print the log of one of its processes."),
    "restart": ("servelab.cli.cluster:restart", "Stop one of our processes and start it again."),
    "demo": ("servelab.cli.demo:demo", "From zero to N and back, with real traffic, in minutes."),
    "catalog": ("servelab.cli.catalog:catalog", "List what the catalogue knows, with its sources."),
    "explain": ("servelab.cli.explain:explain", "How a model runs on a GPU, and what limits it."),
    "validate": (
        "servelab.cli.validate:validate",
        "Hold the simulated engine against measurements.",
    ),
    "simulate": (
        "servelab.cli.simulate:simulate",
        "Run a scenario on a virtual clock, with the code that runs live.",
    ),
    "compare": (
        "servelab.cli.compare:compare",
        "Run a scenario under several autoscaling policies, side by side.",
    ),
    "sweep": (
        "servelab.cli.sweep:sweep",
        "Run a scenario with many settings, and show which of them nothing beats.",
    ),
    "advise": (
        "servelab.cli.advise:advise",
        "Find the scaling settings that meet a promise at the least cost.",
    ),
    "bench": ("servelab.cli.bench:bench", "Measure and report."),
    "emulator": ("servelab.cli.emulator:emulator", "Run the GPU node emulator (plays kubelet)."),
    "engine": ("servelab.cli.engine:engine", "Run mock engines as servers."),
    "scheduler-check": (
        "servelab.cli.scheduler_check:scheduler_check",
        "Compare the engine core with vLLM's scheduler.",
    ),
    "surface-check": (
        "servelab.cli.surface_check:surface_check",
        "Compare a mock engine's answers with recorded ones.",
    ),
    "policy-check": (
        "servelab.cli.policy_check:policy_check",
        "Compare Knative's and Kubernetes' rules, as we read them, with recordings.",
    ),
    "kubelet-check": (
        "servelab.cli.kubelet_check:kubelet_check",
        "Compare emulated pods with recordings of a real kubelet.",
    ),
    "fault": ("servelab.cli.fault:fault", "Let things go wrong on emulated nodes."),
    "completion": ("servelab.cli:completion", "Print a shell completion script."),
}

completion = lazy.completion("servelab")


@click.group(
    cls=lazy.LazyGroup,
    table=COMMANDS,
    extra="modelserve[lab]",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="modelserve", prog_name="servelab")
def main() -> None:
    """Serve, scale and test large language models on a real Kubernetes, without a GPU.

    Start with `servelab up`, or see the whole story with `servelab demo`.
    """
