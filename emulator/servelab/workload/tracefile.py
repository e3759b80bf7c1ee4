"""Readers of request traces, row by row: CSV by column name, and Mooncake's JSON lines.

Known layouts: our own (``arrival_s,input_tokens,output_tokens``), the Azure LLM inference traces
(``TIMESTAMP,ContextTokens,GeneratedTokens``, time as a date), BurstGPT (``Timestamp,Request tokens,
Response tokens`` among others), and Mooncake (``timestamp`` in ms, ``input_length``,
``output_length``; its hashes of prompt blocks are left aside).
"""

import datetime
import gzip
import importlib.resources
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from servelab.workload import arrivals, table

SHIPPED = "azure2023_conv_15min.csv"
# Whole traces that come with the package, by the name a scenario gives them.
PACKAGED: Mapping[str, str] = {
    "azure-code": "azure2023_code.csv.gz",
    "azure-conversation": "azure2023_conv.csv.gz",
}
# ServeGen's clients (``workload.servegen``): laws to draw requests from.
TABLES: Mapping[str, str] = {
    "servegen-clients": "servegen_clients.csv.gz",
    "servegen-lengths": "servegen_lengths.csv.gz",
}
# A million tokens are more than the public traces hold and models of today take: such a row is more
# likely a mistake than a prompt. A model that takes more is told by ``most_tokens``.
MOST_TOKENS = 999_999
# Some 300 years after the first row; beyond, a double soon tells no two instants apart.
MOST_S = 1e10


def _seconds(value: Any) -> float:
    return float(value)


def _milliseconds(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError("true and false are no times")
    return float(value) / 1000


def _date(text: str) -> float:
    # Seven digits of a second, which fromisoformat of Python 3.11 refuses.
    head, _, fraction = text.partition(".")
    moment = datetime.datetime.fromisoformat(head).replace(tzinfo=datetime.UTC)
    return moment.timestamp() + float(f"0.{fraction or 0}")


def _count(value: Any) -> int:
    """Tokens; ``10.0`` is a count too, as tables with gaps are written. Raises ValueError."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    count = float(value)
    if isinstance(value, bool) or not count.is_integer():
        raise ValueError("is no count")
    return int(count)


@dataclass(frozen=True, slots=True)
class Layout:
    """Column names of one kind of trace, and how its time reads."""

    time: str
    input_tokens: str
    output_tokens: str
    parse_time: Callable[[Any], float]

    @property
    def columns(self) -> tuple[str, str, str]:
        """The three column names."""
        return self.time, self.input_tokens, self.output_tokens


LAYOUTS = (
    Layout("arrival_s", "input_tokens", "output_tokens", _seconds),
    Layout("TIMESTAMP", "ContextTokens", "GeneratedTokens", _date),
    Layout("Timestamp", "Request tokens", "Response tokens", _seconds),
)
MOONCAKE = Layout("timestamp", "input_length", "output_length", _milliseconds)

Row = tuple[int, Mapping[str, Any]]


def read(
    lines: Iterable[str], name: str = "trace", *, most_tokens: int = MOST_TOKENS
) -> Iterator[arrivals.Arrival]:
    """Arrivals of a trace in one of the layouts, time counted from its first row; streamed.

    Raises InputError naming file and line for an unknown layout, a row that cannot be read, one
    with more than ``most_tokens`` tokens, and times that are negative or go back.
    """
    lines = iter(lines)
    first = next(lines, "")
    lines = itertools.chain((first,), lines)
    if first.lstrip("\ufeff \t").startswith("{"):
        return _arrivals(_json_rows(lines, name), MOONCAKE, name, most_tokens)
    rows = table.read(lines, name)
    return _arrivals(rows.rows, _layout(rows.columns, name), name, most_tokens)


def _arrivals(
    rows: Iterable[Row], layout: Layout, name: str, most_tokens: int
) -> Iterator[arrivals.Arrival]:
    first_s: float | None = None
    previous_s = 0.0
    for number, row in rows:
        where = f"{name}, line {number}"
        try:
            at_s = layout.parse_time(row[layout.time])
            tokens = _count(row[layout.input_tokens]), _count(row[layout.output_tokens])
            if not math.isfinite(at_s):
                raise ValueError("the time is no number")
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise errors.InputError(
                f"{where}: {_shown(row, layout)} cannot be read as time and two token counts"
            ) from error
        if at_s < 0:
            raise errors.InputError(f"{where}: {layout.time} is negative: {row[layout.time]}")
        first_s = at_s if first_s is None else first_s
        if at_s - first_s < previous_s:
            raise errors.InputError(f"{where}: goes back in time; sort the rows by {layout.time}")
        if at_s - first_s > MOST_S:
            raise errors.InputError(
                f"{where}: {layout.time} is {str(row[layout.time])[:40]}, centuries after the "
                "first row: correct it"
            )
        _check(tokens, layout, most_tokens, where)
        previous_s = at_s - first_s
        yield arrivals.Arrival(previous_s, max(1, tokens[0]), max(1, tokens[1]))


def _check(tokens: tuple[int, int], layout: Layout, most_tokens: int, where: str) -> None:
    """Raises InputError for a count that no request has."""
    for column, count in zip(layout.columns[1:], tokens, strict=True):
        if count < 0:
            raise errors.InputError(f"{where}: {column} is negative: {count}")
        if count > most_tokens:
            raise errors.InputError(
                f"{where}: {column} is {count}, more than a model takes ({most_tokens} at most): "
                "correct it, or leave the row out"
            )


def _shown(row: Mapping[str, Any], layout: Layout) -> str:
    """The three cells, each as it stands there, long ones cut."""
    cells = (f"{column} {str(row.get(column))[:40]}" for column in layout.columns)
    return ", ".join(cells)


def _json_rows(lines: Iterable[str], name: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise errors.InputError(f"{name}, line {number}: no JSON object ({error})") from error
        if not isinstance(row, dict):
            raise errors.InputError(f"{name}, line {number}: no JSON object")
        yield number, row


def _layout(columns: Iterable[str], name: str) -> Layout:
    present = set(columns)
    for layout in LAYOUTS:
        if present.issuperset(layout.columns):
            return layout
    known = " or ".join(",".join(layout.columns) for layout in LAYOUTS)
    raise errors.InputError(
        f"{name}, line 1: needs the columns {known}, or JSON lines with "
        f"{', '.join(MOONCAKE.columns)}; found {sorted(present)}"
    )


def packaged(name: str) -> Iterator[str]:
    """Lines of a trace or table that comes with the package, streamed. Raises UnknownName."""
    file = PACKAGED.get(name) or TABLES.get(name)
    if file is None:
        raise errors.UnknownName("trace", name, known=tuple(PACKAGED))
    place = importlib.resources.files("servelab.workload").joinpath("traces", file)
    with place.open("rb") as raw, gzip.open(raw) as plain:
        yield from io.TextIOWrapper(plain, encoding="utf-8")


def shipped() -> list[arrivals.Arrival]:
    """The conversation trace that comes with the package (its README names source and licence)."""
    text = importlib.resources.files("servelab.workload").joinpath("traces", SHIPPED).read_text()
    return list(read(text.splitlines(), SHIPPED))
