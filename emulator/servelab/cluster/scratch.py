"""Temporary directories of long work; those of work that was killed go when the next one begins.

A directory is locked as long as its owner lives, and has its name only once it is locked: one of
that name without a lock is a dead owner's. Nothing but the standard library is imported, so that
the build of the package can use it from the source tree.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")


@contextlib.contextmanager
def directory(kind: str, within: Path | None = None) -> Iterator[Path]:
    """A new directory ``KIND.xxxxxxxx``, removed at the end; before, those of dead owners are.

    ``within``: where it lies, if not where temporary files do.
    """
    place = Path(tempfile.gettempdir()) if within is None else within
    sweep(kind, place)
    made = Path(tempfile.mkdtemp(prefix=f".{kind}.", dir=place))
    try:
        descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except BaseException:
        made.rmdir()
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        made = made.rename(made.with_name(made.name.removeprefix(".")))
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)


def sweep(kind: str, place: Path) -> None:
    """Remove the directories of that kind whose owners are gone, as far as they are ours."""
    for path in place.glob(f"{kind}.*"):
        with contextlib.suppress(OSError):
            _remove_unowned(path)


def _has_mounts(path: Path) -> bool:
    try:
        mounts = MOUNTS.read_text()
    except FileNotFoundError:
        return False
    return any(line.split(" ")[4].startswith(f"{path.resolve()}/") for line in mounts.splitlines())


def _remove_unowned(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        ours = os.fstat(descriptor).st_uid == os.geteuid()
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever removed it before us may have let another have the name.
        named = os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
        # What is mounted there, by a kubelet that was killed, may be somebody else's.
        if ours and named and not _has_mounts(path):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
