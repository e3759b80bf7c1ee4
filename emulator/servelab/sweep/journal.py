"""What a sweep has done already: a file that only grows, a line of JSON for each finished point."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from modelserve import errors

HEAD = {"servelab-sweep": 1}


class Journal:
    """One sweep's at a time. A line that a kill cut short is cut off; its point runs again."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        """Raises InputError for an unfinished sweep nobody wants resumed, SetUpError if taken."""
        self.path = path
        self.done: dict[str, Mapping[str, Any]] = {}
        try:
            self._file = path.open("a+b")
        except OSError as error:
            raise errors.InputError(f"{path} cannot be written: {error.strerror}") from error
        try:
            self._lock()
            self._read(resume)
        except BaseException:
            self._file.close()
            raise

    def add(self, key: str, figures: Mapping[str, Any]) -> None:
        """A point is done; it is on disk when this returns."""
        self.done[key] = figures
        self._write({"key": key, "figures": figures})

    def remove(self) -> None:
        """The sweep is over and its results are written."""
        self.path.unlink(missing_ok=True)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise errors.SetUpError(f"another sweep writes {self.path}: let it end") from error

    def _read(self, resume: bool) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        lines = list(_objects(whole, self.path))
        # A first line may have been cut short too.
        ours = lines[0] == HEAD if lines else json.dumps(HEAD).encode().startswith(content)
        if not ours:
            raise errors.InputError(f"{self.path} is no journal of a sweep: move it away")
        if len(lines) > 1 and not resume:
            count = "1 finished point" if len(lines) == 2 else f"{len(lines) - 1} finished points"
            raise errors.InputError(
                f"{self.path} holds {count} of a sweep that was not: go on with --resume, or "
                "delete it"
            )
        self._file.truncate(len(whole))
        if not lines:
            self._write(HEAD)
        for line in lines[1:]:
            self.done[line["key"]] = line["figures"]

    def _write(self, document: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(document).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _objects(content: bytes, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(content.splitlines(), 1):
        try:
            found = json.loads(line)
            if number > 1 and not {"key", "figures"} <= found.keys():
                raise ValueError("no key, or no figures")
        except (AttributeError, ValueError) as error:
            raise errors.InputError(
                f"{path}, line {number}: is no line of a sweep's journal: delete the line"
            ) from error
        yield found
