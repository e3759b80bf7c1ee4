"""Readers of request traces in CSV, by column name.

Known layouts: our own (``arrival_s,input_tokens,output_tokens``) and the Azure LLM inference traces
(``TIMESTAMP,ContextTokens,GeneratedTokens``, time as a date).
"""

import csv
import datetime
import importlib.resources
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from modelserve import errors
from servelab.workload import arrivals

SHIPPED = "azure2023_conv_15min.csv"


def _seconds(text: str) -> float:
    return float(text)


def _date(text: str) -> float:
    # Seven digits of a second, which fromisoformat of Python 3.11 refuses.
    head, _, fraction = text.partition(".")
    moment = datetime.datetime.fromisoformat(head).replace(tzinfo=datetime.UTC)
    return moment.timestamp() + float(f"0.{fraction or 0}")


@dataclass(frozen=True, slots=True)
class Layout:
    """Column names of one kind of trace, and how its time reads."""

    time: str
    input_tokens: str
    output_tokens: str
    parse_time: Callable[[str], float]

    @property
    def columns(self) -> tuple[str, str, str]:
        """The three column names."""
        return self.time, self.input_tokens, self.output_tokens


LAYOUTS = (
    Layout("arrival_s", "input_tokens", "output_tokens", _seconds),
    Layout("TIMESTAMP", "ContextTokens", "GeneratedTokens", _date),
)


def read(lines: Iterable[str], name: str = "trace") -> Iterator[arrivals.Arrival]:
    """Arrivals of a CSV trace, time counted from its first row.

    Raises InputError naming file and line for an unknown layout or a row that cannot be read.
    """
    rows = csv.DictReader(lines)
    layout = _layout(rows.fieldnames or (), name)
    first_s: float | None = None
    previous_s = 0.0
    for row in rows:
        where = f"{name}, line {rows.line_num}"
        try:
            at_s = layout.parse_time(row[layout.time])
            tokens = int(row[layout.input_tokens]), int(row[layout.output_tokens])
        except (TypeError, ValueError) as error:
            raise errors.InputError(
                f"{where}: {row} cannot be read as time and two token counts"
            ) from error
        first_s = at_s if first_s is None else first_s
        if at_s - first_s < previous_s:
            raise errors.InputError(f"{where}: goes back in time; sort the rows by {layout.time}")
        if min(tokens) < 0:
            raise errors.InputError(f"{where}: token counts must not be negative")
        previous_s = at_s - first_s
        yield arrivals.Arrival(previous_s, max(1, tokens[0]), max(1, tokens[1]))


def _layout(columns: Iterable[str], name: str) -> Layout:
    present = set(columns)
    for layout in LAYOUTS:
        if present.issuperset(layout.columns):
            return layout
    known = " or ".join(",".join(layout.columns) for layout in LAYOUTS)
    raise errors.InputError(f"{name}, line 1: needs the columns {known}; found {sorted(present)}")


def shipped() -> list[arrivals.Arrival]:
    """The conversation trace that comes with the package (its README names source and licence)."""
    text = importlib.resources.files("servelab.workload").joinpath("traces", SHIPPED).read_text()
    return list(read(text.splitlines(), SHIPPED))
