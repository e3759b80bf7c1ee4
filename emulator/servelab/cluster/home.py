"""The directory of one local cluster: taken by one process at a time, and left as it was found.

``run`` holds the credentials of the present run; ``etcd``, ``emulator`` and ``logs`` are data that
a user may want to keep.
"""

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from modelserve import errors
from servelab.cluster import directories, locks, record

LOCK = "lock"
DATA: Sequence[str] = ("etcd", "emulator", "logs")
RUN = "run"

# etcd sets 64 MB aside for its log at once, and again with the next part of it; the rest is logs.
LEAST_FREE_BYTES = 256_000_000


class Home:
    """A cluster's directory. ``keep``: the data outlives the cluster."""

    def __init__(
        self, name: str, directory: Path, *, keep: bool, least_free_bytes: int = LEAST_FREE_BYTES
    ) -> None:
        self.name = name
        self.directory = directory
        self.keep = keep
        self._least_free_bytes = least_free_bytes
        self._lock = locks.FileLock(directory / LOCK, remove=True)

    @property
    def run(self) -> Path:
        """Files of the present run."""
        return self.directory / RUN

    @property
    def logs(self) -> Path:
        """One log file a process."""
        return self.directory / "logs"

    @property
    def etcd(self) -> Path:
        """What the API server has stored."""
        return self.directory / "etcd"

    @property
    def emulator(self) -> Path:
        """What emulated nodes keep: image and weight caches."""
        return self.directory / "emulator"

    def open(self) -> bool:
        """Take the directory; True if a crashed cluster was cleared from it first.

        SetUpError if another cluster runs here, or the directory is somebody else's, cannot be
        written, or has no room.
        """
        try:
            return self._open()
        except OSError as failure:
            raise errors.SetUpError(
                f"{failure.filename or self.directory} cannot be written "
                f"({failure.strerror}): name another directory with --data-dir"
            ) from failure

    def _open(self) -> bool:
        self._require_ours()
        directories.private(self.directory)
        self._require_room()
        if not self._lock.acquire():
            raise errors.SetUpError(self._already_running())
        stale = record.clear_stale(self.directory)
        self._clear()
        for path in (self.run, self.logs, self.emulator):
            directories.private(path)
        return stale

    def close(self) -> None:
        """Remove what is not to be kept and let the directory go; nothing if it is not ours."""
        if not self._lock.is_held:
            return
        self._clear()
        self._lock.release()
        with contextlib.suppress(OSError):
            self.directory.rmdir()  # only if nothing was kept

    def _clear(self) -> None:
        for name in (RUN, record.FILE) if self.keep else (RUN, record.FILE, *DATA):
            path = self.directory / name
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _require_ours(self) -> None:
        if not self.directory.exists():
            return
        if not self.directory.is_dir():
            raise errors.SetUpError(
                f"{self.directory} is a file: name another directory with --data-dir"
            )
        ours = {*DATA, RUN, LOCK, record.FILE}
        foreign = sorted({path.name for path in self.directory.iterdir()} - ours)
        if foreign:
            raise errors.SetUpError(
                f"{self.directory} holds files that no local cluster wrote "
                f"({', '.join(foreign[:3])}): name an empty directory with --data-dir"
            )

    def _require_room(self) -> None:
        free_bytes = shutil.disk_usage(self.directory).free
        if free_bytes < self._least_free_bytes:
            with contextlib.suppress(OSError):
                self.directory.rmdir()  # only if it was made just now
            raise errors.SetUpError(
                f"{self.directory} has {free_bytes / 1e6:.0f} MB of disk space left, and a local "
                f"cluster needs {self._least_free_bytes / 1e6:.0f} MB: free some, or name a "
                f"directory elsewhere with --data-dir"
            )

    def _already_running(self) -> str:
        running = record.read(self.directory)
        who = "" if running is None else f" (process {running.supervisor.pid})"
        which = f" --data-dir {self.directory}" if self.keep else f" --name {self.name}"
        return (
            f"a local cluster already runs in {self.directory}{who}: see it with "
            f"`servelab status{which}`, stop it with `servelab down{which}`, "
            "or start another one with --name"
        )
