"""Files that are generated: written by ``make crds`` and its like, compared by ``make verify``."""

import argparse
import pathlib
import sys
from collections.abc import Mapping
from typing import Any


def main(
    program: str,
    description: str | None,
    documents: Mapping[str, str],
    made_by: str = "make crds",
) -> int:
    """Write or check ``documents`` (text by file name) in folders; 1 if a checked one differs."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    action = parser.add_mutually_exclusive_group(required=True)
    folders: dict[str, Any] = {"nargs": "+", "type": pathlib.Path, "metavar": "DIR"}
    action.add_argument("--write", help="write the files", **folders)
    action.add_argument("--check", help="compare the files", **folders)
    options = parser.parse_args()
    stale = []
    for folder in options.write or options.check:
        for name, text in documents.items():
            path = folder / name
            if options.write:
                path.write_text(text)
            elif not path.exists() or path.read_text() != text:
                stale.append(path)
    for path in stale:
        sys.stderr.write(f"{path} does not match what it is made from; run `{made_by}`\n")
    return 1 if stale else 0
