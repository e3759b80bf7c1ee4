"""``servelab catalog``: what the catalogue knows, with units and sources."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich import box, table

from modelserve import errors
from modelserve.cli import options
from servelab.explain import listing
from servelab.report import paper

OUT = paper.sheet()


@click.command()
@click.argument("kind", type=click.Choice(listing.KINDS), required=False)
@click.argument("name", required=False)
@click.option("--filter", "word", help="Only rows that hold WORD, in any case.", metavar="WORD")
@options.printed("JSON: one document.")
def catalog(kind: str | None, name: str | None, word: str | None, as_json: bool) -> None:
    """List models, gpus, storage, images or engines; with NAME, one entry in full."""
    if name is not None and kind is not None:
        if word is not None:
            raise errors.InputError("--filter is for lists: leave it out when you name one entry")
        _one(kind, name, as_json=as_json)
        return
    kinds = listing.KINDS if kind is None else (kind,)
    found = {each: listing.matching(listing.rows(each), word) for each in kinds}
    if as_json:
        document: object = found if kind is None else found[kind]
        click.echo(json.dumps(document, indent=2))
        return
    for each, rows in found.items():
        _table(each, rows)


def _one(kind: str, name: str, *, as_json: bool) -> None:
    entry = listing.entry(kind, name)
    if as_json:
        click.echo(json.dumps(entry, indent=2, default=str))
        return
    shown = table.Table("", "", box=None, show_header=False, padding=(0, 2, 0, 0))
    for key, value in entry.items():
        if key != "figures":
            shown.add_row(key, _cell(value))
    paper.rows(shown, prose=True)
    figures = table.Table("figure", "value", "source", "where from", box=box.SIMPLE_HEAD)
    for one in entry["figures"]:
        note = f"; {one['note']}" if one["note"] else ""
        figures.add_row(
            one["path"], _cell(one["value"]), one["source"], f"{one['source_text']}{note}"
        )
    if entry["figures"]:
        paper.rows(figures, prose=True)


def _table(kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        OUT.print(f"{kind}: nothing matches")
        return
    shown = table.Table(title=kind, title_justify="left", box=box.SIMPLE_HEAD)
    for column in rows[0]:
        shown.add_column(column)
    for row in rows:
        shown.add_row(*(_cell(value) for value in row.values()))
    paper.rows(shown)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_cell(each) for each in value)
    return str(value)
