"""``modelserve wake``: bring a model up by hand, and keep it up for a while."""

import asyncio
import datetime

import click

from modelserve import errors, ports
from modelserve.api import names
from modelserve.api import spec as specs
from modelserve.cli import options, target

# Modes in which nobody but the user sets the count.
_DEAF = {specs.Mode.MANUAL, specs.Mode.DRY_RUN}


@click.command()
@click.argument("name")
@options.namespace_of_object
@options.kubeconfig
@click.option(
    "--for",
    "keep_s",
    type=options.Duration(),
    default=None,
    help="Keep it awake that long, such as 30m or 1h30m (real time).",
)
def wake(name: str, namespace: str | None, kubeconfig: str | None, keep_s: float | None) -> None:
    """Wake the model NAME from zero, as a request would."""
    where = target.namespace(namespace, kubeconfig)
    now = datetime.datetime.now(datetime.UTC)

    async def work(cluster: ports.Cluster) -> None:
        await annotate(cluster, where, name, now, keep_s)

    asyncio.run(target.with_cluster(kubeconfig, work))
    kept = f", awake for {keep_s:.0f} s at least" if keep_s else ""
    click.echo(f"{name} wakes{kept}; follow it: kubectl get modelserve {name} -n {where} --watch")


async def annotate(
    cluster: ports.Cluster, where: str, name: str, now: datetime.datetime, keep_s: float | None
) -> None:
    """Write the annotations the operator looks for. Raises InputError where they do nothing."""
    found = await target.read(cluster, where, name)
    mode = found["spec"].get("scaling", {}).get("mode", "Auto")
    if mode in _DEAF:
        raise errors.InputError(
            f"{name} is in mode {mode}, in which nothing wakes it: set spec.scaling.mode to Auto"
            + (f", or kubectl scale modelserve {name} --replicas=1" if mode == "Manual" else "")
        )
    annotations: dict[str, str | None] = {names.WAKE: now.isoformat()}
    if keep_s is not None:
        until = now + datetime.timedelta(seconds=keep_s)
        annotations[names.AWAKE_UNTIL] = until.isoformat(timespec="seconds")
    body = {"metadata": {"annotations": annotations}}
    await cluster.patch(ports.MODELSERVES, where, name, body, manager="modelserve-cli")
