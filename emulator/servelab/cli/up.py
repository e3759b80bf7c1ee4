"""``servelab up``: starts a local cluster, in the foreground or behind."""

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from modelserve import errors
from modelserve.cli import lazy
from modelserve.cli import options as cli_options
from servelab.cli import where
from servelab.cluster import (
    binaries,
    lastwords,
    local,
    orders,
    record,
    reporting,
    supervision,
    workloads,
)

POLL_REAL_S = 0.2
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@cli_options.time_scale
@click.option("--detach", is_flag=True, help="Return when it is ready, and leave it running.")
@where.data_dir_option
@where.name_option
@click.option("--gateway-port", type=click.IntRange(1, 65535), help="Default: any free port.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that run mock engines.",
)
@click.option(
    "--only-control-plane", is_flag=True, help="CRDs and RBAC, but no operator, gateway, emulator."
)
@click.option(
    "--kubernetes-bin",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    envvar="MODELSERVE_KUBERNETES_BIN",
    help="Directory with etcd, kube-apiserver, kube-controller-manager and kube-scheduler.",
)
@click.option("--supervise", is_flag=True, hidden=True)
def up(
    time_scale: float,
    detach: bool,
    data_dir: Path | None,
    name: str,
    gateway_port: int | None,
    workers: int,
    only_control_plane: bool,
    kubernetes_bin: Path | None,
    supervise: bool,
) -> None:
    """Start a local cluster: a real Kubernetes control plane, our processes, emulated GPU nodes.

    Stays in the foreground until Ctrl-C, unless --detach is given. The Kubernetes binaries are
    fetched or built once and cached.
    """
    options = local.Options(
        name=name,
        data_dir=data_dir,
        time_scale=time_scale,
        processes=() if only_control_plane else workloads.ALL,
        workers=workers,
        gateway_port=gateway_port,
        kubernetes_bin=kubernetes_bin,
    )
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    try:
        if detach:
            _start_behind(options)
        else:
            _run(options, supervise=supervise)
    except KeyboardInterrupt:
        # `servelab down` and Ctrl-C are the ordinary ends of a cluster, but not of a start.
        raise lazy.Interrupted("interrupted before the cluster was ready") from None
    except BrokenPipeError:
        raise  # who read our output has left
    except OSError as failure:
        # A full disk shows wherever something is written.
        where_ = failure.filename or options.directory
        raise click.ClickException(f"{where_}: {failure.strerror or failure}") from failure


def _run(options: local.Options, *, supervise: bool) -> None:
    """Start, serve until told to end, stop."""
    reporter = reporting.Plain(sys.stderr) if supervise else reporting.for_stream()
    cluster = local.LocalCluster(options, reporter)
    lastwords.forget(options.directory)
    begun_real_s = time.monotonic()
    with reporting.closing(reporter):
        cluster.start()
    try:
        cluster.install()
        reporter.say(f"ready after {time.monotonic() - begun_real_s:.1f} s")
        if supervise:
            _let_go_of_the_terminal(cluster.home.logs / "supervisor.log")
        else:
            click.echo(where.next_steps(_record(cluster)))
            click.echo("\nCtrl-C stops it.")
        _serve(cluster)
    except KeyboardInterrupt:
        click.echo("stopping", err=True)
    except (errors.ModelServeError, OSError) as failure:
        if supervise:
            at = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
            lastwords.write(options.directory, f"at {at}: {failure}", keep=options.keeps)
        raise
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        cluster.stop()


def _serve(cluster: local.LocalCluster) -> None:
    """Answer orders and bring back what ends, for ever. SetUpError if etcd ends."""
    supervisor = supervision.Supervisor(cluster, _tell)
    while True:
        orders.answer(cluster)
        supervisor.look(time.monotonic())
        time.sleep(POLL_REAL_S)


def _tell(sentence: str) -> None:
    click.echo(sentence, err=True)


def _let_go_of_the_terminal(log: Path) -> None:
    click.echo(json.dumps({"ready": True}))
    sys.stdout.flush()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _start_behind(options: local.Options) -> None:
    """Start a supervisor in a session of its own, and follow it until it is ready."""
    with reporting.closing(reporting.for_stream()) as reporter:
        binaries.find(reporter, options.kubernetes_bin)
    supervisor = subprocess.Popen(
        [sys.executable, "-P", "-m", "servelab", "up", "--supervise", *_flags(options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        cwd="/",
    )
    assert supervisor.stdout is not None
    said: list[str] = []
    try:
        for line in supervisor.stdout:
            if line.startswith('{"ready"'):
                running = record.read(options.directory)
                assert running is not None
                click.echo(where.next_steps(running))
                down = where.command("down", options.name, options.data_dir)
                click.echo(f"\n{down} stops it.")
                return
            said.append(line)
            if not line.startswith("Error: "):
                click.echo(line.rstrip(), err=True)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait()
        raise
    supervisor.wait()
    reasons = "".join(said).partition("Error: ")[2].strip()
    raise errors.SetUpError(reasons or "the supervisor ended without a word")


def _flags(options: local.Options) -> Sequence[str]:
    flags = [
        f"--name={options.name}",
        f"--time-scale={options.time_scale}",
        f"--workers={options.workers}",
    ]
    if options.data_dir is not None:
        flags.append(f"--data-dir={options.data_dir.absolute()}")
    if options.gateway_port is not None:
        flags.append(f"--gateway-port={options.gateway_port}")
    if options.kubernetes_bin is not None:
        flags.append(f"--kubernetes-bin={options.kubernetes_bin.absolute()}")
    if not options.processes:
        flags.append("--only-control-plane")
    return flags


def _record(cluster: local.LocalCluster) -> record.Record:
    running = record.read(cluster.home.directory)
    assert running is not None
    return running
