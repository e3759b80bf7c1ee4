"""Where tables are printed: a terminal at its own width, a pipe or file wide enough for any."""

import sys

from rich import console

# Rich takes 80 columns for what is no terminal, and would fold every cell into it.
UNBOUND_COLUMNS = 200


def sheet() -> console.Console:
    """Standard output, for tables and sentences without colours of their own."""
    width = None if sys.stdout.isatty() else UNBOUND_COLUMNS
    return console.Console(highlight=False, width=width)
