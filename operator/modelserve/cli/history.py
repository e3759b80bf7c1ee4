"""``modelserve history``: the last changes of a model's replica count, with their reasons."""

import asyncio
import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from modelserve import ports
from modelserve.api import status as statuses
from modelserve.cli import options, target
from modelserve.reconciling import memory

_INDENT = " " * 4


@click.command()
@click.argument("name")
@options.namespace_of_object
@options.kubeconfig
@options.printed("JSON: a list of records.", plain="text")
def history(name: str, namespace: str | None, kubeconfig: str | None, as_json: bool) -> None:
    """Show the last ten changes of the replica count of the model NAME, newest first."""
    where = target.namespace(namespace, kubeconfig)

    async def work(cluster: ports.Cluster) -> ports.Object:
        return await target.read(cluster, where, name)

    found = asyncio.run(target.with_cluster(kubeconfig, work))
    status = memory.parse_status(found.get("status") or {})
    if as_json:
        dumped = [r.model_dump(mode="json", by_alias=True) for r in status.history]
        click.echo(json.dumps(dumped, indent=2, ensure_ascii=False))
        return
    width = min(120, shutil.get_terminal_size((100, 24)).columns)
    for line in lines(name, status.history, width):
        click.echo(line)


def lines(name: str, records: Sequence[statuses.ScaleRecord], width: int) -> Iterator[str]:
    """The text: a head line for each record, its message wrapped below."""
    if not records:
        yield f"{name}: the replica count has not changed yet"
    for record in records:
        yield f"{record.at or '?'}  {record.from_} → {record.to}  {record.reason}"
        yield from textwrap.wrap(
            record.message, width, initial_indent=_INDENT, subsequent_indent=_INDENT
        )
