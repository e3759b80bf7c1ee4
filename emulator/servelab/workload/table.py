"""CSV by column name, row by row, each row with its line."""

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from modelserve import errors

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and rows with the number of the line each ends on. Cells of short rows are None."""

    columns: Sequence[str]
    rows: Iterator[tuple[int, Row]]


def read(lines: Iterable[str], name: str) -> Table:
    """The table in these lines, streamed. Raises InputError, also while it is read."""
    lines = iter(lines)
    # A byte order mark is no part of the first column's name.
    head = next(lines, "").removeprefix("\ufeff")
    reader = csv.DictReader(itertools.chain((head,), lines))
    try:
        columns = tuple(reader.fieldnames or ())
    except csv.Error as error:
        raise errors.InputError(f"{name}, line 1: is no CSV: {error}") from error
    return Table(columns, _rows(reader, name))


def _rows(reader: "csv.DictReader[str]", name: str) -> Iterator[tuple[int, Row]]:
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        # The reader's own count: that of the DictReader is of the last row it could read.
        line = reader.reader.line_num
        raise errors.InputError(f"{name}, line {line}: is no CSV: {error}") from error
