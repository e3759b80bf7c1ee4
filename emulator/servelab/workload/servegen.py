"""Clients as ServeGen describes them: a rate and a law of gaps per ten minutes, and lengths.

Layouts: ``model,client,window_start_s,rate_rps,cv,arrival_pattern,shape,scale`` (windows without a
row are silent) and ``model,client,field,p01,…,p99`` with the fields input_tokens and output_tokens.
ServeGen: Y. Xiang et al., arXiv:2505.09999. It gives laws, not requests: requests are drawn.
"""

import math
from collections.abc import Iterable, Iterator

from modelserve import errors
from modelserve.catalog import files
from servelab.workload import table
from servelab.workload.generators import GapLaw, Quantiles, Window

# ServeGen's own: each row stands for ten minutes.
WINDOW_S = 600.0
RATES = ("model", "client", "window_start_s", "rate_rps", "arrival_pattern", "shape")
_NUMBERS = ("window_start_s", "rate_rps", "shape")
LENGTHS = ("model", "client", "field")
MOST_PER_S = 1e6


def windows(
    lines: Iterable[str], client: str, name: str, *, from_s: float = 0.0, scale: float = 1.0
) -> Iterator[Window]:
    """The windows of a client (``model/number``) from ``from_s`` on, silent ones too; streamed.

    ``scale`` multiplies the rates. Raises InputError naming file and line, UnknownName for a client
    that is not there.
    """
    at_s = from_s
    for number, row in _rows(lines, client, RATES, name):
        where = f"{name}, line {number}"
        try:
            start_s, per_s, shape = (float(row[key]) for key in _NUMBERS)
            law = GapLaw(row["arrival_pattern"])
        except (TypeError, ValueError) as error:
            laws = " and ".join(GapLaw)
            raise errors.InputError(
                f"{where}: cannot be read as {', '.join(RATES)}; laws are {laws}"
            ) from error
        if not (0 <= start_s < math.inf and 0 <= per_s <= MOST_PER_S and 0 < shape <= 1e6):
            raise errors.InputError(
                f"{where}: window_start_s and rate_rps must not be negative, shape must be over 0"
            )
        end_s = start_s + WINDOW_S
        if end_s <= from_s:
            continue
        if start_s < at_s and at_s > from_s:
            raise errors.InputError(f"{where}: goes back in time; sort by window_start_s")
        if start_s > at_s:
            yield Window(start_s - at_s, 0.0)
        yield Window(end_s - max(start_s, from_s), per_s * scale, shape, law)
        at_s = end_s


def lengths(lines: Iterable[str], client: str, name: str) -> tuple[Quantiles, Quantiles]:
    """Laws of prompt and answer lengths of a client. Raises as ``windows``."""
    found: dict[str, Quantiles] = {}
    for number, row in _rows(lines, client, LENGTHS, name):
        found[row["field"]] = _quantiles(row, f"{name}, line {number}")
    for field in ("input_tokens", "output_tokens"):
        if field not in found:
            raise errors.InputError(f"{name}: client {client} has no row {field}")
    return found["input_tokens"], found["output_tokens"]


def check(lines: Iterable[str], client: str, name: str) -> None:
    """Read as far as the client's first row. Raises as ``windows``."""
    next(_rows(lines, client, ("model", "client"), name), None)


def _quantiles(row: table.Row, where: str) -> Quantiles:
    try:
        points = [
            (int(key[1:]) / 100, float(value))
            for key, value in row.items()
            if key and key[0] == "p" and key[1:].isdecimal()
        ]
    except (TypeError, ValueError) as error:
        raise errors.InputError(f"{where}: a quantile is no number") from error
    shares, tokens = [share for share, _ in points], [value for _, value in points]
    rising = tokens == sorted(tokens) and shares == sorted(set(shares))
    if not points or not rising or not 0 <= tokens[0] <= tokens[-1] < 1e9:
        raise errors.InputError(f"{where}: needs columns like p50, p95 with rising token counts")
    return Quantiles(tuple(points))


def _rows(
    lines: Iterable[str], client: str, columns: Iterable[str], name: str
) -> Iterator[tuple[int, table.Row]]:
    """The rows of one client, each with its line. UnknownName once there turns out to be none."""
    rows = table.read(lines, name)
    missing = [column for column in columns if column not in rows.columns]
    if missing:
        raise errors.InputError(f"{name}, line 1: has no column {', '.join(missing)}")
    known: dict[str, None] = {}
    for number, row in rows.rows:
        one = f"{row['model']}/{row['client']}"
        if one == client:
            yield number, row
        known[one] = None
    if client not in known:
        raise files.unknown("client", client, known)
