"""The cache of binaries: one directory a version, with a manifest of checksums.

A binary counts only if the manifest says so and its bytes still agree; so a half-written or damaged
file is noticed. Files are brought in under a temporary name and renamed.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from servelab.cluster import directories, locks, releases, reporting

MANIFEST = "manifest.json"
LOCK = "lock"
PARTIAL_SUFFIX = ".partial"
VERSION_TIMEOUT_REAL_S = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One verified binary: checksum, and the size (bytes) and time (ns) that spare a re-check."""

    version: str
    sha256: str
    size_bytes: int
    modified_ns: int


class Store:
    """The binaries of one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextlib.contextmanager
    def locked(self, reporter: reporting.Reporter) -> Iterator[None]:
        """Be the only one who fills the store: waits for another, clears what is half-done."""
        directories.private(self.directory)

        def waiting() -> None:
            reporter.say("another start is fetching the Kubernetes binaries; waiting for it")

        with locks.held(self.directory / LOCK, waiting):
            self._clear_partial()
            try:
                yield
            finally:
                self._clear_partial()

    def scratch(self) -> Path:
        """A directory for temporary files of a build, which goes with the lock."""
        return directories.private(self.directory / f"build{PARTIAL_SUFFIX}")

    def path(self, component: releases.Component) -> Path:
        """Where the binary stands, or would."""
        return self.directory / component.value

    def has(self, component: releases.Component) -> bool:
        """Whether the manifest vouches for the file as it is now."""
        entry = self._entries().get(component.value)
        return entry is not None and self._agrees(component, entry)

    def adopt(self, component: releases.Component, reporter: reporting.Reporter) -> bool:
        """Take in a file that stands here already if it is whole; else remove it and say so."""
        path = self.path(component)
        if not path.exists():
            return False
        known = self._entries().get(component.value)
        if known is None and version_of(component, path) == component.version:
            self._record(component)
            return True
        reporter.say(
            f"{component.value} in the cache is damaged or half-written "
            f"({path.stat().st_size:,} bytes): fetching it again"
        )
        path.unlink(missing_ok=True)
        return False

    def partial(self, component: releases.Component) -> Path:
        """A name to write to before ``commit``."""
        return self.directory / f"{component.value}.{os.getpid()}{PARTIAL_SUFFIX}"

    def commit(self, component: releases.Component) -> bool:
        """Rename the partial file into place if it runs and has the right version."""
        partial = self.partial(component)
        partial.chmod(0o755)
        if version_of(component, partial) != component.version:
            partial.unlink(missing_ok=True)
            return False
        partial.replace(self.path(component))
        self._record(component)
        return True

    def _clear_partial(self) -> None:
        for partial in self.directory.glob(f"*{PARTIAL_SUFFIX}"):
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)

    def _agrees(self, component: releases.Component, entry: Entry) -> bool:
        path = self.path(component)
        try:
            status = path.stat()
        except FileNotFoundError:
            return False
        if entry.version != component.version or status.st_size != entry.size_bytes:
            return False
        return status.st_mtime_ns == entry.modified_ns or checksum(path) == entry.sha256

    def _record(self, component: releases.Component) -> None:
        path = self.path(component)
        status = path.stat()
        entries = self._entries()
        entries[component.value] = Entry(
            component.version, checksum(path), status.st_size, status.st_mtime_ns
        )
        text = json.dumps({name: dataclasses.asdict(e) for name, e in entries.items()}, indent=2)
        temporary = self.directory / f"{MANIFEST}.{os.getpid()}{PARTIAL_SUFFIX}"
        temporary.write_text(text + "\n")
        temporary.replace(self.directory / MANIFEST)

    def _entries(self) -> dict[str, Entry]:
        try:
            document: dict[str, dict[str, Any]] = json.loads(
                (self.directory / MANIFEST).read_text()
            )
            return {name: Entry(**fields) for name, fields in document.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, AttributeError):
            return {}  # a damaged manifest vouches for nothing; files are checked anew


def checksum(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def version_of(component: releases.Component, path: Path) -> str | None:
    """The version a binary reports; None if it cannot be run."""
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_REAL_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return releases.parse_version(component, done.stdout)
