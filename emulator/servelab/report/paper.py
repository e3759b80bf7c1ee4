"""How tables and sentences reach standard output: no figure is ever cut or folded."""

import re
import sys

from rich import console, table

# Rich takes 80 columns for what is no terminal, and would fold every sentence into it.
UNBOUND_COLUMNS = 200
# Wider than any row.
_WIDE_COLUMNS = 10_000
# Padding at the end of a line, which a narrow terminal would wrap; styles may stand in it.
_PADDING = re.compile(r"(?: |\x1b\[[0-9;]*m)+$")
_RESET = "\x1b[0m"


def sheet() -> console.Console:
    """Standard output, for sentences without colours of their own."""
    width = None if _on_terminal() else UNBOUND_COLUMNS
    return console.Console(highlight=False, width=width)


def rows(shown: table.Table, *, prose: bool = False) -> None:
    """Print a table as wide as it is. With ``prose`` a terminal folds its cells, else rows wrap."""
    wide = sheet() if prose and _on_terminal() else _wide()
    with wide.capture() as got:
        wide.print(shown)
    for line in got.get().splitlines():
        wide.file.write(f"{_unpadded(line)}\n")


def columns_of(shown: table.Table) -> int:
    """How wide a table is."""
    return _wide().measure(shown).maximum


def room() -> int | None:
    """Columns of the terminal; None where standard output is none."""
    return console.Console().width if _on_terminal() else None


def _on_terminal() -> bool:
    # A process that was started without a standard output has None for it.
    return sys.stdout is not None and sys.stdout.isatty()


def _wide() -> console.Console:
    return console.Console(highlight=False, width=_WIDE_COLUMNS)


def _unpadded(line: str) -> str:
    bare = _PADDING.sub("", line)
    return bare + _RESET if "\x1b[" in bare else bare
