"""A sweep's results as a file, CSV or Parquet, which is there whole or not at all."""

import csv
import importlib
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modelserve import errors

SUFFIXES = (".csv", ".parquet")

Rows = Sequence[Mapping[str, Any]]


def check(path: Path) -> None:
    """Raises InputError for a file that could not be written at the end, SetUpError for a lack."""
    if path.suffix not in SUFFIXES:
        raise errors.InputError(f"{path}: results are written as {' or '.join(SUFFIXES)}")
    check_place(path)
    if path.suffix == ".parquet":
        _pyarrow()


def check_place(path: Path) -> None:
    """Raises InputError where no such file can be."""
    if not path.absolute().parent.is_dir():
        raise errors.InputError(f"{path.parent} is no directory: make it, or name another file")
    if path.is_dir():
        raise errors.InputError(f"{path} is a directory: name a file in it")
    if path.exists() and not path.is_file():  # a device, which a file would take the place of
        raise errors.InputError(f"{path} is no ordinary file: name another one")


def write(path: Path, rows: Rows) -> None:
    """Columns in the order of the first row; what is not known is empty (CSV) or null."""
    replace(path, _parquet(rows) if path.suffix == ".parquet" else _csv(rows))


def replace(path: Path, content: bytes) -> None:
    """Write a file beside it, then give it the name, so that nobody ever sees half of it."""
    try:
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    except OSError as error:
        raise errors.SetUpError(f"{path} cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise errors.SetUpError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _csv(rows: Rows) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: Rows) -> bytes:
    pyarrow = _pyarrow()
    parquet = importlib.import_module("pyarrow.parquet")
    columns = {name: _column([row[name] for row in rows]) for name in rows[0]} if rows else {}
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def _column(values: list[Any]) -> list[Any]:
    """Of one type: numbers as they are, anything mixed or nested as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return values if len(kinds) < 2 else [None if v is None else float(v) for v in values]
    if len(kinds) == 1 and kinds <= {bool, str}:
        return values
    return [None if value is None else str(value) for value in values]


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise errors.SetUpError(
            "Parquet needs the package pyarrow: pip install 'modelserve[sweep]', or write .csv"
        ) from error
